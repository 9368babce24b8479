// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The body of a request.
  ///
  /// It is read again, from its beginning, when the request is sent again: after a redirect that keeps it, for a
  /// credential, or for a retry.
  public struct Content: Sendable {
    // In a box: a request without a body, as most are, is copied faster.
    indirect enum Kind: Sendable {
      case bytes([UInt8])
      case file(String)
      case stream(length: Int64?, @Sendable (UploadPipe) async throws -> Void)
      /// Several, one after the other.
      case chain([Content])
    }

    let kind: Kind

    /// Bytes in memory.
    public static func bytes(_ bytes: [UInt8]) -> Content { Content(kind: .bytes(bytes)) }

    /// A text in UTF-8.
    public static func text(_ text: String) -> Content { .bytes(Array(text.utf8)) }

    /// A file, with the length that it has when it is opened.
    ///
    /// It is read by the loader's thread, as far as there is room on the connection.
    public static func file(_ path: String) -> Content { Content(kind: .file(path)) }

    /// Chunks from a sequence, as far as there is room on the connection.
    ///
    /// - Parameters:
    ///   - length: How many bytes there are in all. If the sequence has fewer or more, the request ends with
    ///     ``HTTP/Error/Code/invalidRequest``. With nil the length is not announced.
    ///   - make: Called for the sequence each time the body is sent.
    public static func stream<Chunks: AsyncSequence & SendableMetatype>(
      length: Int64? = nil, _ make: @escaping @Sendable () -> Chunks
    ) -> Content where Chunks.Element == [UInt8], Chunks.AsyncIterator: SendableMetatype {
      Content(
        kind: .stream(length: length) { pipe in
          for try await chunk in make() { try await pipe.send(chunk) }
        })
    }

    /// Whether it is the same each time it is read, which is not known of a sequence.
    var isRepeatable: Bool {
      switch kind {
      case .bytes, .file: true
      case .stream: false
      case .chain(let contents): contents.allSatisfy(\.isRepeatable)
      }
    }

    /// How many bytes of a file are read into memory for a digest.
    static let digestLimit = 16 * 1024 * 1024

    /// Whether a digest of a body can be made before it is sent.
    static func canBeDigested(_ body: Content?) -> Bool {
      guard let body else { return true }
      return switch body.kind {
      case .bytes: true
      case .file: wholeBytes(body) != nil
      case .stream: false
      case .chain(let contents): contents.allSatisfy(canBeDigested) && wholeBytes(body) != nil
      }
    }

    /// All bytes of a body; nil for a sequence, and for a file that is too large or cannot be read.
    static func wholeBytes(_ body: Content?) -> [UInt8]? {
      guard let body else { return [] }
      switch body.kind {
      case .bytes(let bytes): return bytes
      case .stream: return nil
      case .chain(let contents):
        var bytes: [UInt8] = []
        for content in contents {
          guard let more = wholeBytes(content), bytes.count + more.count <= digestLimit else { return nil }
          bytes += more
        }
        return bytes
      case .file(let path):
        guard let source = try? FileSource(path), let length = source.length, length <= digestLimit else { return nil }
        return try? source.readWhole()
      }
    }

    /// How many bytes there are, where that is known without a look at the file system.
    var length: Int64? {
      switch kind {
      case .bytes(let bytes): Int64(bytes.count)
      case .file: nil
      case .stream(let length, _): length
      // That of a file is not known.
      case .chain: nil
      }
    }
  }

  /// The received body of an answer.
  public struct Body: Sendable, Hashable {
    /// The decoded bytes.
    public let bytes: [UInt8]

    /// Makes a body, as an interceptor does.
    public init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    /// Makes a body of a text in UTF-8, as an interceptor does.
    public init(_ text: String) { bytes = Array(text.utf8) }

    /// How many bytes there are.
    public var count: Int { bytes.count }

    /// The bytes as UTF-8; nil if they are not.
    public var text: String? { String(validating: bytes, as: UTF8.self) }
  }
}
