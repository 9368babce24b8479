// SPDX-License-Identifier: Apache-2.0

import CLibCurl

extension HTTP {
  /// The policy for decoding a response's body according to its `Content-Encoding`.
  public enum Decoding: Sendable, Hashable {
    /// Decodes codings that the client itself requested.
    ///
    /// The client sends an `Accept-Encoding` header unless the request has one or a `Range`, or the body is written to
    /// a file. The body of a 206 response is not decoded.
    case negotiated
    /// Delivers the body as it was sent. The client does not add an `Accept-Encoding` header.
    case raw
    /// Decodes every supported coding. The client sends an `Accept-Encoding` header unless the request has one or a
    /// `Range`.
    case always
  }
}

/// A content coding that can be decoded if its library is available.
enum ContentCoding: Sendable, Hashable, CaseIterable {
  case gzip
  case deflate
  case brotli
  case zstd

  /// Returns the coding with this name; nil if it is not supported.
  init?(_ name: String) {
    switch name {
    case "gzip", "x-gzip": self = .gzip
    case "deflate": self = .deflate
    case "br": self = .brotli
    case "zstd": self = .zstd
    default: return nil
    }
  }

  /// The name used in `Accept-Encoding`.
  var name: String {
    switch self {
    case .gzip: "gzip"
    case .deflate: "deflate"
    case .brotli: "br"
    case .zstd: "zstd"
    }
  }

  /// The format that the decoder tries first.
  var format: Int32 {
    switch self {
    case .gzip: Int32(clc_gzip)
    case .deflate: Int32(clc_zlib)
    case .brotli: Int32(clc_brotli)
    case .zstd: Int32(clc_zstd)
    }
  }

  /// The magic number of each member or frame; empty if the format has only one.
  var magic: [UInt8] {
    switch self {
    case .gzip: Self.gzipMagic
    case .zstd: Self.zstdMagic
    case .deflate, .brotli: []
    }
  }

  private static let gzipMagic: [UInt8] = [0x1f, 0x8b, 8]
  private static let zstdMagic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]

  /// The error message for the missing library, with the name of Debian's package.
  var library: String {
    switch self {
    case .gzip, .deflate: "zlib is missing; Debian's package is zlib1g"
    case .brotli: "Brotli's decoder is missing; Debian's package is libbrotli1"
    case .zstd: "zstd is missing; Debian's package is libzstd1"
    }
  }

  /// Whether the coding's library can be loaded.
  var isAvailable: Bool { clc_can_decode(format) != 0 }

  /// The `Accept-Encoding` header for all available codings; nil if there are none.
  static let field: HTTP.Headers.Field? = {
    let names = allCases.filter(\.isAvailable).map(\.name)
    return names.isEmpty ? nil : HTTP.Headers.Field("Accept-Encoding", names.joined(separator: ", "))
  }()

  /// Whether a request's `Accept-Encoding` accepts a coding.
  static func isNamed(_ coding: String, in headers: HTTP.Headers) -> Bool {
    headers.list(of: "Accept-Encoding").contains { element in
      let parts = element.lowercased().split(separator: ";").map { trimmed($0) }
      guard let name = parts.first, !parts.dropFirst().contains(where: isZero) else { return false }
      return name == "*" || name == coding || ContentCoding(name).map { $0 == ContentCoding(coding) } ?? false
    }
  }

  /// Whether a parameter is a quality value of zero, which excludes the coding.
  private static func isZero(_ parameter: String) -> Bool {
    guard parameter.hasPrefix("q=") else { return false }
    return Double(parameter.dropFirst(2)) == 0
  }
}
