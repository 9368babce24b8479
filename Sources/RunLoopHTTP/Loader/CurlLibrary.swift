// SPDX-License-Identifier: Apache-2.0

import CLibCurl

enum CurlLibrary {
  /// Loads libcurl, which is tried again after a failure.
  static func open() throws(HTTP.Error) {
    try check { clc_open($0, $1) }
  }

  /// Tries to load a file without using it.
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

  /// Whether TLS uses OpenSSL 3, which provides more information than others; requires that libcurl is loaded.
  static let usesOpenSSL = clc_uses_openssl() != 0

  /// Whether libcurl has the prerequest callback, without which plaintext connections are not reused.
  static var asksBeforeRequest: Bool { clc_version() >= UInt32(clc_asks_before_request) }

  /// Whether a plaintext HTTP/2 connection can be reused; from 7.88.0 on, before 8.0.0, libcurl restarts the protocol
  /// with each request, which servers do not understand.
  static var keepsPlainHTTP2: Bool {
    clc_version() < UInt32(clc_begins_http2_anew) || clc_version() >= UInt32(clc_keeps_http2)
  }

  /// Whether libcurl reports how many bytes of a request it has written.
  static var countsRequest: Bool {
    clc_version() < UInt32(clc_counts_no_request) || clc_version() >= UInt32(clc_counts_body)
  }

  /// Whether the reported size of a request includes its body.
  static var countsBody: Bool { clc_version() >= UInt32(clc_counts_body) }
}
