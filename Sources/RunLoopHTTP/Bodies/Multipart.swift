// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A form with several parts (`multipart/form-data`), whose files and sequences are read while they are sent.
  ///
  /// Set the request's `Content-Type` to ``contentType`` and its body to ``content``.
  public struct Multipart: Sendable {
    /// A field or a file of a form.
    public struct Part: Sendable {
      /// The name of the field.
      public var name: String
      /// The content of the part.
      public var content: Content
      /// The file name to send; nil for a field that is not a file.
      public var fileName: String?
      /// The content type to send; nil for none.
      public var type: String?

      /// Creates a part.
      public init(_ name: String, _ content: Content, fileName: String? = nil, type: String? = nil) {
        (self.name, self.content, self.fileName, self.type) = (name, content, fileName, type)
      }

      fileprivate var head: String {
        // Escapes names in the same way as browsers, so that they cannot end the quoted string or the line.
        func escaped(_ text: String, quote: String = "%22") -> String {
          let codes: [Unicode.Scalar: String] = ["\"": quote, "\r": "%0D", "\n": "%0A"]
          return text.unicodeScalars.map { codes[$0] ?? String($0) }.joined()
        }
        var head = "Content-Disposition: form-data; name=\"\(escaped(name))\""
        if let fileName { head += "; filename=\"\(escaped(fileName))\"" }
        head += "\r\n"
        if let type { head += "Content-Type: \(escaped(type, quote: "\""))\r\n" }
        return head + "\r\n"
      }
    }

    /// The parts, in the order they are sent.
    public var parts: [Part]
    /// The random delimiter between the parts.
    public let boundary: String

    /// Creates a form.
    public init(_ parts: [Part] = []) {
      self.parts = parts
      boundary = "Boundary+" + hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    }

    /// The value of the request's `Content-Type`.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// The body of the request.
    ///
    /// Its length is announced if the lengths of all parts are known. It can be sent again if all parts can.
    public var content: Content {
      var contents: [Content] = []
      for part in parts {
        contents += [.text("\(contents.isEmpty ? "" : "\r\n")--\(boundary)\r\n\(part.head)"), part.content]
      }
      return Content(kind: .chain(contents + [.text("\(contents.isEmpty ? "" : "\r\n")--\(boundary)--\r\n")]))
    }
  }
}

/// Several bodies in sequence.
///
/// Each file is opened when its turn comes, and must still have the length it had at the beginning.
final class ChainSource: BodySource {
  private let contents: [HTTP.Content]
  private let lengths: [Int64?]
  private let onBytes: @Sendable () -> Void
  private var next = 0
  private var current: (any BodySource)?

  init(_ contents: [HTTP.Content], onBytes: @escaping @Sendable () -> Void) throws(HTTP.Error) {
    (self.contents, self.onBytes) = (contents, onBytes)
    var lengths: [Int64?] = []
    for content in contents {
      switch content.kind {
      case .bytes, .stream: lengths.append(content.length)
      case .file, .chain: lengths.append(try content.open(onBytes: onBytes).length)
      }
    }
    self.lengths = lengths
  }

  var length: Int64? {
    var sum: Int64 = 0
    for length in lengths {
      guard let length, case let (added, hasOverflown) = sum.addingReportingOverflow(length), !hasOverflown else {
        return nil
      }
      sum = added
    }
    return sum
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
    while true {
      guard let source = current else {
        guard next < contents.count else { return .end }
        if let fault = begin() { return .failed(fault) }
        continue
      }
      let read = source.read(into: buffer)
      guard read == .end else { return read }
      source.close()
      current = nil
    }
  }

  /// Opens the next body, or returns the reason if that fails.
  private func begin() -> String? {
    do throws(HTTP.Error) {
      let source = try contents[next].open(onBytes: onBytes)
      guard source.length == lengths[next] else {
        source.close()
        return "a file of the body has another length than at the beginning"
      }
      current = source
      next += 1
      return nil
    } catch {
      return error.detail
    }
  }

  func rewind() -> Bool {
    guard contents.allSatisfy(\.isRepeatable) else { return false }
    close()
    next = 0
    return true
  }

  func close() {
    current?.close()
    current = nil
  }
}
