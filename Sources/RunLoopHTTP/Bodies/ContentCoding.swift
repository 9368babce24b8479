// SPDX-License-Identifier: Apache-2.0

import CLibCurl

extension HTTP {
  /// When the body of a response is decoded, as its `Content-Encoding` says.
  public enum Decoding: Sendable, Hashable {
    /// Codings that the client has asked for by itself are decoded.
    ///
    /// The client asks by an `Accept-Encoding` of its own, unless the request has one, or a `Range`, or the body is
    /// written to a file. The body of a response with the status 206 is not decoded.
    case negotiated
    /// The body is delivered as it was sent. The client sends no `Accept-Encoding` of its own.
    case raw
    /// Whatever can be decoded is. The client asks for codings unless the request has an
    /// `Accept-Encoding` or a `Range`.
    case always
  }
}

/// A content coding that can be decoded if its library is there.
enum ContentCoding: Sendable, Hashable, CaseIterable {
  case gzip
  case deflate
  case brotli
  case zstd

  /// Reads the name of a coding; nil for one that cannot be decoded.
  init?(_ name: String) {
    switch name {
    case "gzip", "x-gzip": self = .gzip
    case "deflate": self = .deflate
    case "br": self = .brotli
    case "zstd": self = .zstd
    default: return nil
    }
  }

  /// The name by which it is asked for.
  var name: String {
    switch self {
    case .gzip: "gzip"
    case .deflate: "deflate"
    case .brotli: "br"
    case .zstd: "zstd"
    }
  }

  /// The format that its decoder is asked for first.
  var format: Int32 {
    switch self {
    case .gzip: Int32(clc_gzip)
    case .deflate: Int32(clc_zlib)
    case .brotli: Int32(clc_brotli)
    case .zstd: Int32(clc_zstd)
    }
  }

  /// The bytes with which each of its members or frames begins; empty if none may follow the first.
  var magic: [UInt8] {
    switch self {
    case .gzip: Self.gzipMagic
    case .zstd: Self.zstdMagic
    case .deflate, .brotli: []
    }
  }

  private static let gzipMagic: [UInt8] = [0x1f, 0x8b, 8]
  private static let zstdMagic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]

  /// The library that it needs, with Debian's package.
  var library: String {
    switch self {
    case .gzip, .deflate: "zlib is missing; Debian's package is zlib1g"
    case .brotli: "Brotli's decoder is missing; Debian's package is libbrotli1"
    case .zstd: "zstd is missing; Debian's package is libzstd1"
    }
  }

  /// Whether its library can be opened.
  var isAvailable: Bool { clc_can_decode(format) != 0 }

  /// The field that asks for all that can be decoded; nil if nothing can.
  static let field: HTTP.Headers.Field? = {
    let names = allCases.filter(\.isAvailable).map(\.name)
    return names.isEmpty ? nil : HTTP.Headers.Field("Accept-Encoding", names.joined(separator: ", "))
  }()

  /// Whether a request's `Accept-Encoding` asks for a coding.
  static func isNamed(_ coding: String, in headers: HTTP.Headers) -> Bool {
    headers.list(of: "Accept-Encoding").contains { element in
      let parts = element.lowercased().split(separator: ";").map { trimmed($0) }
      guard let name = parts.first, !parts.dropFirst().contains(where: isZero) else { return false }
      return name == "*" || name == coding || ContentCoding(name).map { $0 == ContentCoding(coding) } ?? false
    }
  }

  /// Whether a parameter says that something is not wanted.
  private static func isZero(_ parameter: String) -> Bool {
    guard parameter.hasPrefix("q=") else { return false }
    return Double(parameter.dropFirst(2)) == 0
  }
}
