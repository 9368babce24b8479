// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC

/// What libcurl says of a transfer that has ended without success.
struct CurlFailure {
  var code: Int32
  /// The text that it has written for this transfer, or none; it is for people, and decides nothing.
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
  /// Whether another request was answered on the connection by HTTP/2.
  var wasKept = false
  /// Whether the server had ended the connection and everything that it sent was read.
  var peerHasEnded = false
  /// The alert that has ended the encrypted connection.
  var alert: Alert?
  /// Whether a connection to the host is being encrypted, as far as is known.
  var isSecuring = false
  /// How far the answer was read; nil: no further than `isBeforeAnswer` says.
  var progress: Progress?

  /// An alert of TLS.
  struct Alert: Hashable {
    /// Its number, as RFC 8446 has it.
    var number: Int
    /// Whether this side has sent it, because it could not read what it received, or the connection was cut.
    var isOwn: Bool
  }

  /// How far an answer was read.
  enum Progress: Hashable {
    case nothing
    /// Within the head, of which lines of so many bytes were received.
    case head(byteCount: Int)
    /// Within a body that is not sent in chunks.
    case body
    case chunks(ChunkReader.State)
  }

  /// The number, libcurl's words and the system's.
  var detail: String {
    let words = text.isEmpty ? String(cString: clc_easy_text(code)) : text
    return "\(words) (libcurl \(code)\(systemError == 0 ? "" : ", " + systemText(systemError)))"
  }

  /// Whether a kept connection of HTTP/2 takes no more requests.
  ///
  /// The server has said so, perhaps while no request was open, and the library tries the connection all the same.
  var isEndOfKept: Bool { Int(code) == Int(clc_http2) && wasKept && isBeforeAnswer }

  /// Whether the server has ended the session of HTTP/2 before the response, in order or not.
  ///
  /// If only rejected streams were open, the connection may still be open: the library gives no cause then. Of a
  /// connection that has ended below an open stream it says that the stream was not closed.
  var isEndOfSession: Bool {
    if isEndOfKept { return true }
    guard isBeforeAnswer else { return false }
    return switch Int(code) {
    case Int(clc_http2): peerHasEnded || text.isEmpty && systemError == 0
    // Without a head there is no other whole of which it could be a part.
    case Int(clc_partial_file): true
    case Int(clc_http2_stream): peerHasEnded
    default: false
    }
  }

  /// Which error it is for the program.
  ///
  /// It is decided by the numbers, and by what was received and sent: the texts differ between versions.
  var errorCode: HTTP.Error.Code {
    if isBeforeAnswer, wantedCertificate, Self.refusals.contains(Int(code)) { return .clientCertificateRequired }
    if isEndOfKept { return .connectionLost }
    // Whichever number the library has for them.
    if case .chunks(.broken)? = progress { return .badServerResponse }
    if case .chunks(.tooLong)? = progress { return .tooLarge }
    return switch Int(code) {
    case Int(clc_weird_reply), Int(clc_write_error): .badServerResponse
    // A head of HTTP/0.9; before a connection, a library without encryption.
    case Int(clc_unsupported_protocol): wasConnected ? .badServerResponse : .noLibrary
    case Int(clc_bad_argument): argumentCode
    case Int(clc_bad_url): .unsupportedURL
    case Int(clc_not_built_in), Int(clc_upload_failed), Int(clc_read_error): .invalidRequest
    case Int(clc_cannot_resolve_proxy), Int(clc_proxy_failed): .proxyFailed
    case Int(clc_cannot_resolve_host): .cannotFindHost
    case Int(clc_cannot_connect): usesProxy ? .proxyFailed : .cannotConnect
    case Int(clc_failed_init), Int(clc_interface_failed), Int(clc_no_connection): .cannotConnect
    // A line that is longer than the library takes is a lack of memory to it.
    case Int(clc_out_of_memory): wasConnected ? .tooLarge : .cannotConnect
    case Int(clc_too_large): .tooLarge
    case Int(clc_http2): systemError == 0 && !peerHasEnded ? .badServerResponse : .connectionLost
    // The library resets a stream whose head it cannot read. Another was reset by the server, or its body was cut.
    // Before 8.0 the library reports nothing of a head that it cannot read whole, so that both are one.
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
    // Content codings are left to us, so that within a head it is about the transfer coding.
    case Int(clc_bad_content_encoding): isWithinHead ? .badServerResponse : .cannotDecode
    case Int(clc_receive_error), Int(clc_send_error): connectionCode
    default: .connectionLost
    }
  }

  /// How a server ends a connection without the certificate that it has asked for.
  private static let refusals = [
    Int(clc_tls_connect_error), Int(clc_receive_error), Int(clc_send_error), Int(clc_got_nothing),
  ]

  /// What the library does not take is a line of a head or, before that, our own certificate or another option.
  private var argumentCode: HTTP.Error.Code {
    if wasConnected { return .badServerResponse }
    if usesProxy, connectStatus == 0 { return .proxyFailed }
    return isSecuring ? .tlsFailed : usesProxy ? .proxyFailed : .invalidRequest
  }

  /// What is said of a connection means three things: it is lost, its head is too large, or the proxy has refused.
  private var connectionCode: HTTP.Error.Code {
    if connectStatus != 0, !(200...299).contains(connectStatus) { return .proxyFailed }
    if isAboutOwnCertificate { return .clientCertificateRequired }
    // TLS 1.3 rejects the client's certificate when the request is on its way.
    if isBeforeAnswer, let alert, !alert.isOwn { return tlsCode }
    if case .head(let byteCount)? = progress, byteCount > Self.mostOfHead - Self.longestLine, systemError == 0,
      alert == nil
    {
      return .tooLarge
    }
    return usesProxy && !wasConnected ? .proxyFailed : .connectionLost
  }

  /// How many bytes the library takes of all heads of an answer, and of one line, which it reports when it is whole.
  private static let mostOfHead = 300 * 1024
  private static let longestLine = 100 * 1024

  private var isWithinHead: Bool { if case .head? = progress { true } else { false } }

  private var tlsCode: HTTP.Error.Code { usesProxy && connectStatus == 0 ? .proxyFailed : .tlsFailed }

  /// Whether the server has ended the connection for the lack of a certificate of ours (certificate_required).
  private var isAboutOwnCertificate: Bool { alert == Alert(number: 116, isOwn: false) }
}
