// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC

/// libcurl's report on a transfer that has failed.
struct CurlFailure {
  var code: Int32
  /// libcurl's error message for this transfer, which is for humans and must not affect decisions; may be empty.
  var text: String
  /// The error number of the last failed system call, or zero.
  var systemError: Int32
  /// The status of the proxy's response to CONNECT, or zero.
  var connectStatus: Int
  var usesProxy: Bool
  /// Whether the request was about to be sent.
  var wasConnected: Bool
  /// Whether nothing of a response has arrived.
  var isBeforeAnswer: Bool
  /// Whether the server asked for a certificate and none was configured.
  var wantedCertificate: Bool
  /// Whether an earlier HTTP/2 response has arrived on the connection.
  var wasKept = false
  /// Whether the server had ended the connection and all its data was read.
  var peerHasEnded = false
  var alert: Alert?
  /// Whether the TLS handshake with the host is in progress, as far as is known.
  var isSecuring = false
  /// How much of the response was parsed; nil if only `isBeforeAnswer` is known.
  var progress: Progress?

  struct Alert: Hashable {
    /// The number of the alert (RFC 8446).
    var number: Int
    /// Whether this side sent the alert, because it received invalid data or the connection was truncated.
    var isOwn: Bool
  }

  /// The position reached in a response.
  enum Progress: Hashable {
    case nothing
    /// Inside the headers, of which lines with this total length were received.
    case head(byteCount: Int)
    /// Inside a body that is not chunked.
    case body
    case chunks(ChunkReader.State)
  }

  /// The error code, libcurl's message and the system's.
  var detail: String {
    let words = text.isEmpty ? String(cString: clc_easy_text(code)) : text
    return "\(words) (libcurl \(code)\(systemError == 0 ? "" : ", " + systemText(systemError)))"
  }

  /// Whether a reused HTTP/2 connection accepts no more requests.
  ///
  /// The server has announced that, possibly while no request was active, and libcurl tries the connection anyway.
  var isEndOfKept: Bool { Int(code) == Int(clc_http2) && wasKept && isBeforeAnswer }

  /// Whether the server ended the HTTP/2 session before the response, properly or not.
  ///
  /// If only rejected streams were active, the connection may still be open, and libcurl reports no cause. If the
  /// connection has ended under an active stream, libcurl reports that the stream was not closed.
  var isEndOfSession: Bool {
    if isEndOfKept { return true }
    guard isBeforeAnswer else { return false }
    return switch Int(code) {
    case Int(clc_http2): peerHasEnded || text.isEmpty && systemError == 0
    // Without headers, this cannot be a truncated body.
    case Int(clc_partial_file): true
    case Int(clc_http2_stream): peerHasEnded
    default: false
    }
  }

  /// The error code for the program.
  ///
  /// It is derived from error codes and from what was sent and received, because messages differ between versions.
  var errorCode: HTTP.Error.Code {
    if isBeforeAnswer, wantedCertificate, Self.refusals.contains(Int(code)) { return .clientCertificateRequired }
    if isEndOfKept { return .connectionLost }
    // Regardless of libcurl's error code for them.
    if case .chunks(.broken)? = progress { return .badServerResponse }
    if case .chunks(.tooLong)? = progress { return .tooLarge }
    return switch Int(code) {
    case Int(clc_weird_reply), Int(clc_write_error): .badServerResponse
    // An HTTP/0.9 response or, before a connection is made, a libcurl without TLS.
    case Int(clc_unsupported_protocol): wasConnected ? .badServerResponse : .noLibrary
    case Int(clc_bad_argument): argumentCode
    case Int(clc_bad_url): .unsupportedURL
    case Int(clc_not_built_in), Int(clc_upload_failed), Int(clc_read_error): .invalidRequest
    case Int(clc_cannot_resolve_proxy), Int(clc_proxy_failed): .proxyFailed
    case Int(clc_cannot_resolve_host): .cannotFindHost
    case Int(clc_cannot_connect): usesProxy ? .proxyFailed : .cannotConnect
    case Int(clc_failed_init), Int(clc_interface_failed), Int(clc_no_connection): .cannotConnect
    // libcurl reports a line that exceeds its limit as a lack of memory.
    case Int(clc_out_of_memory): wasConnected ? .tooLarge : .cannotConnect
    case Int(clc_too_large): .tooLarge
    case Int(clc_http2): systemError == 0 && !peerHasEnded ? .badServerResponse : .connectionLost
    // libcurl resets a stream whose headers it cannot parse. Otherwise the server reset the stream, or the body was
    // truncated. Before 8.0, libcurl does not report incomplete invalid headers, so the two cases cannot be
    // distinguished.
    case Int(clc_http2_stream): isWithinHead ? .badServerResponse : .connectionLost
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
    // Content codings are decoded here, so an error inside the headers is about the transfer coding.
    case Int(clc_bad_content_encoding): isWithinHead ? .badServerResponse : .cannotDecode
    case Int(clc_receive_error), Int(clc_send_error): connectionCode
    default: .connectionLost
    }
  }

  /// The error codes with which a connection ends if the server requires a certificate and gets none.
  private static let refusals = [
    Int(clc_tls_connect_error), Int(clc_receive_error), Int(clc_send_error), Int(clc_got_nothing),
  ]

  /// The error code if libcurl rejects a header line or, before that, our certificate or another option.
  private var argumentCode: HTTP.Error.Code {
    if wasConnected { return .badServerResponse }
    if usesProxy, connectStatus == 0 { return .proxyFailed }
    return isSecuring ? .tlsFailed : usesProxy ? .proxyFailed : .invalidRequest
  }

  /// The error code for connection errors: a lost connection, oversized headers, or a rejection by the proxy.
  private var connectionCode: HTTP.Error.Code {
    if connectStatus != 0, !(200...299).contains(connectStatus) { return .proxyFailed }
    if isAboutOwnCertificate { return .clientCertificateRequired }
    // In TLS 1.3, the client's certificate is rejected after the request has been sent.
    if isBeforeAnswer, let alert, !alert.isOwn { return tlsCode }
    if case .head(let byteCount)? = progress, byteCount > Self.mostOfHead - Self.longestLine, systemError == 0,
      alert == nil
    {
      return .tooLarge
    }
    return usesProxy && !wasConnected ? .proxyFailed : .connectionLost
  }

  /// libcurl's limits in bytes for all headers of a response and for one line, which it reports when it is complete.
  private static let mostOfHead = 300 * 1024
  private static let longestLine = 100 * 1024

  private var isWithinHead: Bool { if case .head? = progress { true } else { false } }

  private var tlsCode: HTTP.Error.Code { usesProxy && connectStatus == 0 ? .proxyFailed : .tlsFailed }

  /// Whether the server ended the connection with the alert certificate_required.
  private var isAboutOwnCertificate: Bool { alert == Alert(number: 116, isOwn: false) }
}
