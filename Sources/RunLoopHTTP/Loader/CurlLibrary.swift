// SPDX-License-Identifier: Apache-2.0

import CLibCurl

/// libcurl, which is opened when the first request is made.
enum CurlLibrary {
  /// Opens it; repeatedly as long as it cannot be opened.
  static func open() throws(HTTP.Error) {
    try check { clc_open($0, $1) }
  }

  /// Tries a file without using it.
  static func tryOpen(_ file: String, oldest: UInt32 = UInt32(clc_oldest)) throws(HTTP.Error) {
    try check { clc_try_open(file, oldest, $0, $1) }
  }

  private static func check(_ open: (UnsafeMutablePointer<CChar>, Int) -> Int32) throws(HTTP.Error) {
    let capacity = 512
    let answer: (Int32, String) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer in
      buffer.initialize(repeating: 0)
      guard let start = buffer.baseAddress else { return (Int32(clc_missing), "") }
      return (open(start, capacity), String(cString: start))
    }
    guard answer.0 == Int32(clc_opened) else { throw HTTP.Error(.noLibrary, answer.1) }
  }

  /// Whether connections are encrypted by OpenSSL, which says more than others; the library is open.
  static let usesOpenSSL = clc_uses_openssl() != 0

  /// Whether a transfer asks before it sends a request on a connection; if not, plain connections are not used again.
  static var asksBeforeRequest: Bool { clc_version() >= UInt32(clc_asks_before_request) }

  /// Whether a plain connection of HTTP/2 takes a second request: from 7.88.0 on libcurl begins the protocol anew with
  /// each, which the server does not understand; 8.0.0 does not.
  static var keepsPlainHTTP2: Bool {
    clc_version() < UInt32(clc_begins_http2_anew) || clc_version() >= UInt32(clc_keeps_http2)
  }

  /// Whether the library reports how many bytes of a request it has written.
  static var countsRequest: Bool {
    clc_version() < UInt32(clc_counts_no_request) || clc_version() >= UInt32(clc_counts_body)
  }

  /// Whether the body is part of the size of a request.
  static var countsBody: Bool { clc_version() >= UInt32(clc_counts_body) }
}
