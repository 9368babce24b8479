// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// Something wrong in a response that does no harm, and that the client has passed over.
  ///
  /// With ``HTTP/Configuration/strict`` each of these ends the request with an error instead.
  public enum Oddity: Sendable, Hashable {
    /// `Content-Encoding` names something that is no content coding, such as `UTF-8` or `aws-chunked`.
    case unknownCoding(String)
    /// The encoded body is complete, and bytes followed that belong to nothing; they were dropped.
    case bytesAfterEnd
    /// White space stands between the name of a field and its colon; the field is there without it.
    case spaceBeforeColon(String)
    /// A line of the headers or trailers is not a field; it was dropped. Its first bytes are given.
    case malformedLine(String)
    /// The response is a part that was not requested (206), and the part is the whole.
    case unrequestedPart
  }
}

extension HTTP.Oddity {
  /// How many are noted of a response.
  static let limit = 32

  /// A line that is not a field.
  init(line: UnsafeRawBufferPointer) {
    self = .malformedLine(WireFields.decode(UnsafeRawBufferPointer(rebasing: line.prefix(80))))
  }
}

extension ContentCoding {
  /// Names of codings that are registered and cannot be decoded here: a body is not what it seems without that.
  private static let others: Set<String> = [
    "compress", "x-compress", "exi", "pack200-gzip", "aes128gcm", "dcb", "dcz",
  ]

  /// Whether a name is that of no coding.
  static func isUnknown(_ name: String) -> Bool { ContentCoding(name) == nil && !others.contains(name) }
}
