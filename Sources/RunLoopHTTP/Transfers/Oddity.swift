// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// A harmless malformation in a response that the client tolerated.
  ///
  /// If ``HTTP/Configuration/strict`` is set, each of these fails the request instead.
  public enum Oddity: Sendable, Hashable {
    /// `Content-Encoding` names something that is not a content coding, such as `UTF-8` or `aws-chunked`.
    case unknownCoding(String)
    /// Extra bytes followed the end of the encoded body; they were dropped.
    case bytesAfterEnd
    /// There was whitespace between a header's name and its colon; it was removed.
    case spaceBeforeColon(String)
    /// A line of the headers or trailers is not a valid field; it was dropped. The value is the start of the line.
    case malformedLine(String)
    /// The response is partial (206) although no range was requested, but its range is the whole body.
    case unrequestedPart
  }
}

extension HTTP.Oddity {
  /// The maximum number of oddities recorded per response.
  static let limit = 32

  init(line: UnsafeRawBufferPointer) {
    self = .malformedLine(WireFields.decode(UnsafeRawBufferPointer(rebasing: line.prefix(80))))
  }
}

extension ContentCoding {
  /// Registered codings that cannot be decoded here, so that a body with one of them cannot be delivered.
  private static let others: Set<String> = [
    "compress", "x-compress", "exi", "pack200-gzip", "aes128gcm", "dcb", "dcz",
  ]

  /// Whether a name is not a registered content coding.
  static func isUnknown(_ name: String) -> Bool { ContentCoding(name) == nil && !others.contains(name) }
}
