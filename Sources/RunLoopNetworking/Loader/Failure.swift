// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC

/// What libcurl says of a transfer that has ended without success.
struct CurlFailure {
  var code: Int32
  /// The text that it has written for this transfer, or none.
  var text: String
  /// The error number of the system call that failed last, or zero.
  var systemError: Int32
  /// The status with which a proxy has answered CONNECT, or zero.
  var connectStatus: Int
  var usesProxy: Bool
  /// Whether the request was about to be sent.
  var wasConnected: Bool
  /// Whether nothing of an answer has arrived.
  var isBeforeAnswer: Bool
  /// Whether the server has asked for a certificate and there was none.
  var wantedCertificate: Bool
  /// Whether an earlier request was answered on the connection by HTTP/2.
  var wasKept = false

  /// The number, libcurl's words and the system's.
  var detail: String {
    let words = text.isEmpty ? String(cString: clc_easy_text(code)) : text
    return "\(words) (libcurl \(code)\(systemError == 0 ? "" : ", " + systemText(systemError)))"
  }

  /// Whether a kept connection of HTTP/2 takes no more requests.
  ///
  /// The server has said so while nobody asked for anything, and the library tries it all the same.
  var isEndOfKept: Bool { Int(code) == Int(clc_http2) && wasKept && isBeforeAnswer }

  /// Which error it is for the program.
  var errorCode: HTTP.Error.Code {
    if isBeforeAnswer, wantedCertificate, Self.refusals.contains(Int(code)) { return .clientCertificateRequired }
    if isEndOfKept { return .connectionLost }
    return switch Int(code) {
    case Int(clc_weird_reply), Int(clc_write_error): .badServerResponse
    // A head of HTTP/0.9; before a connection, a library without encryption.
    case Int(clc_unsupported_protocol): wasConnected ? .badServerResponse : .noLibrary
    // A chunk or a line of a head that it cannot read; before a connection, what it is asked for.
    case Int(clc_bad_argument): wasConnected ? .badServerResponse : usesProxy ? .proxyFailed : .invalidRequest
    case Int(clc_bad_url): .unsupportedURL
    case Int(clc_not_built_in), Int(clc_upload_failed), Int(clc_read_error): .invalidRequest
    case Int(clc_cannot_resolve_proxy), Int(clc_proxy_failed): .proxyFailed
    case Int(clc_cannot_resolve_host): .cannotFindHost
    case Int(clc_cannot_connect): usesProxy ? .proxyFailed : .cannotConnect
    case Int(clc_failed_init), Int(clc_interface_failed), Int(clc_no_connection): .cannotConnect
    // A line that is longer than the library takes is a lack of memory to it.
    case Int(clc_out_of_memory): wasConnected ? .tooLarge : .cannotConnect
    case Int(clc_too_large): .tooLarge
    case Int(clc_http2): systemError == 0 ? .badServerResponse : .connectionLost
    case Int(clc_http2_stream): text.contains("PROTOCOL_ERROR") ? .badServerResponse : .connectionLost
    case Int(clc_timed_out): .timedOut
    case Int(clc_tls_connect_error): isAboutOwnCertificate ? .clientCertificateRequired : tlsCode
    case Int(clc_certificate_problem), Int(clc_cipher_problem), Int(clc_tls_engine_missing),
      Int(clc_tls_engine_failed), Int(clc_tls_engine_not_started), Int(clc_tls_required),
      Int(clc_hello_encryption_required):
      .tlsFailed
    case Int(clc_peer_failed_verification), Int(clc_bad_ca_file), Int(clc_tls_issuer_error),
      Int(clc_bad_certificate_status), Int(clc_bad_revocation_file):
      .untrusted
    case Int(clc_pinned_key_mismatch): .pinMismatch
    case Int(clc_client_certificate_required): .clientCertificateRequired
    case Int(clc_bad_content_encoding): .cannotDecode
    case Int(clc_receive_error), Int(clc_send_error): connectionCode
    default: .connectionLost
    }
  }

  /// How a server ends a connection without the certificate that it has asked for.
  private static let refusals = [
    Int(clc_tls_connect_error), Int(clc_receive_error), Int(clc_send_error), Int(clc_got_nothing),
  ]

  /// What is said of a connection means three things: it is lost, its chunks are garbage, or the proxy has refused.
  private var connectionCode: HTTP.Error.Code {
    if connectStatus != 0, !(200...299).contains(connectStatus) { return .proxyFailed }
    if isAboutOwnCertificate { return .clientCertificateRequired }
    // TLS 1.3 rejects the client's certificate when the request is on its way.
    if isBeforeAnswer, text.contains("SSL routines"), text.contains(" alert ") { return tlsCode }
    // A line of a trailer that is longer than the library takes is a lack of memory to it.
    if text.contains("chunked-encoding") { return text.contains("Out of memory") ? .tooLarge : .badServerResponse }
    if text.contains("Too large response headers") { return .tooLarge }
    return usesProxy && !wasConnected ? .proxyFailed : .connectionLost
  }

  private var tlsCode: HTTP.Error.Code { usesProxy && connectStatus == 0 ? .proxyFailed : .tlsFailed }

  private var isAboutOwnCertificate: Bool {
    text.contains("certificate required") || text.contains("peer did not return a certificate")
  }
}
