// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The body of a request.
  ///
  /// It is read again from the beginning each time the request is sent again: for a redirect that keeps the body, a
  /// credential or a retry.
  public struct Content: Sendable {
    // Indirect, because most requests have no body and are then cheaper to copy.
    indirect enum Kind: Sendable {
      case bytes([UInt8])
      case file(String)
      case stream(length: Int64?, @Sendable (UploadPipe) async throws -> Void)
      /// Several bodies in sequence.
      case chain([Content])
    }

    let kind: Kind

    /// Bytes in memory.
    public static func bytes(_ bytes: [UInt8]) -> Content { Content(kind: .bytes(bytes)) }

    /// A string, encoded as UTF-8.
    public static func text(_ text: String) -> Content { .bytes(Array(text.utf8)) }

    /// A file, with the length it has when it is opened.
    ///
    /// The loader's thread reads it as the connection can send.
    public static func file(_ path: String) -> Content { Content(kind: .file(path)) }

    /// Chunks from an asynchronous sequence, which are requested as the connection can send.
    ///
    /// - Parameters:
    ///   - length: The total number of bytes. If the sequence produces fewer or more, the request ends with
    ///     ``HTTP/Error/Code/invalidRequest``. If it is nil, no length is announced.
    ///   - make: Creates the sequence each time the body is sent, which may be again for a redirect, a challenge or a
    ///     retry, or after a connection has ended. It must return a new sequence from the beginning of the body.
    public static func stream<Chunks: AsyncSequence & SendableMetatype>(
      length: Int64? = nil, _ make: @escaping @Sendable () -> Chunks
    ) -> Content where Chunks.Element == [UInt8], Chunks.AsyncIterator: SendableMetatype {
      Content(
        kind: .stream(length: length) { pipe in
          for try await chunk in make() { try await pipe.send(chunk) }
        })
    }

    /// Whether every read yields the same bytes, which cannot be known of a sequence.
    var isRepeatable: Bool {
      switch kind {
      case .bytes, .file: true
      case .stream: false
      case .chain(let contents): contents.allSatisfy(\.isRepeatable)
      }
    }

    /// The maximum number of bytes read into memory to compute a digest.
    static let digestLimit = 16 * 1024 * 1024

    /// Whether a digest of the body can be computed before it is sent.
    static func canBeDigested(_ body: Content?) -> Bool { wholeBytes(body) != nil }

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

    /// The length in bytes, if it is known without accessing the file system.
    var length: Int64? {
      switch kind {
      case .bytes(let bytes): Int64(bytes.count)
      case .file: nil
      case .stream(let length, _): length
      // A chain may contain files, whose lengths are not known here.
      case .chain: nil
      }
    }
  }

  /// The received body of a response.
  public struct Body: Sendable, Hashable {
    /// The decoded bytes.
    public let bytes: [UInt8]

    /// Creates a body, for use in an interceptor.
    public init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    /// Creates a body from a string encoded as UTF-8, for use in an interceptor.
    public init(_ text: String) { bytes = Array(text.utf8) }

    /// The number of bytes.
    public var count: Int { bytes.count }

    /// The bytes as a UTF-8 string; nil if they are not valid UTF-8.
    public var text: String? { String(validating: bytes, as: UTF8.self) }
  }
}
