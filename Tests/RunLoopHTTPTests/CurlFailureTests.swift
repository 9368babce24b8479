// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopHTTP

/// The mapping of libcurl's error codes to errors.
@Suite struct CurlFailureTests {
  private func name(_ code: Int32, connected: Bool, proxy: Bool = false) -> String {
    CurlFailure(
      code: code, text: "", systemError: 0, connectStatus: 0, usesProxy: proxy, wasConnected: connected,
      isBeforeAnswer: true, wantedCertificate: false
    ).errorCode.name
  }

  /// All codes with an error of their own: after the request was about to be sent, and before.
  private static let table: [(Int32, String, String)] = [
    (1, "badServerResponse", "noLibrary"), (2, "cannotConnect", "cannotConnect"),
    (3, "unsupportedURL", "unsupportedURL"), (4, "invalidRequest", "invalidRequest"),
    (5, "proxyFailed", "proxyFailed"), (6, "cannotFindHost", "cannotFindHost"),
    (7, "cannotConnect", "cannotConnect"), (8, "badServerResponse", "badServerResponse"),
    (16, "badServerResponse", "badServerResponse"), (23, "badServerResponse", "badServerResponse"),
    (25, "invalidRequest", "invalidRequest"), (26, "invalidRequest", "invalidRequest"),
    (27, "tooLarge", "cannotConnect"), (28, "timedOut", "timedOut"), (35, "tlsFailed", "tlsFailed"),
    (43, "badServerResponse", "invalidRequest"), (45, "cannotConnect", "cannotConnect"),
    (53, "tlsFailed", "tlsFailed"), (54, "tlsFailed", "tlsFailed"), (58, "tlsFailed", "tlsFailed"),
    (59, "tlsFailed", "tlsFailed"), (60, "untrusted", "untrusted"), (61, "cannotDecode", "cannotDecode"),
    (64, "tlsFailed", "tlsFailed"), (66, "tlsFailed", "tlsFailed"), (77, "untrusted", "untrusted"),
    (82, "untrusted", "untrusted"), (83, "untrusted", "untrusted"), (89, "cannotConnect", "cannotConnect"),
    (90, "pinMismatch", "pinMismatch"), (91, "untrusted", "untrusted"), (97, "proxyFailed", "proxyFailed"),
    (98, "clientCertificateRequired", "clientCertificateRequired"), (100, "tooLarge", "tooLarge"),
    (101, "tlsFailed", "tlsFailed"),
  ]

  @Test("every libcurl code maps to an error in every state, and unknown ones to a lost connection")
  func everyNumber() {
    for code in Int32(1)...200 {
      let expected = Self.table.first { $0.0 == code }
      #expect(name(code, connected: true) == expected?.1 ?? "connectionLost", "\(code)")
      #expect(name(code, connected: false) == expected?.2 ?? "connectionLost", "\(code)")
    }
  }

  @Test("a failure before the connection through a proxy exists is the proxy's error")
  func proxies() {
    let proxys = (Int32(1)...200).filter {
      name($0, connected: false, proxy: true) != name($0, connected: false)
    }
    #expect(proxys == [7, 35, 43, 55, 56])
    #expect(proxys.allSatisfy { name($0, connected: false, proxy: true) == "proxyFailed" })
  }

  /// The mapped error of an encrypted connection without a proxy, after the request was sent.
  private func code(
    _ code: Int32, system: Int32 = 0, wanted: Bool = false, alert: CurlFailure.Alert? = nil,
    _ progress: CurlFailure.Progress
  ) -> HTTP.Error.Code {
    CurlFailure(
      code: code, text: "", systemError: system, connectStatus: 0, usesProxy: false, wasConnected: true,
      isBeforeAnswer: progress == .nothing, wantedCertificate: wanted, alert: alert, progress: progress
    ).errorCode
  }

  @Test("headers that libcurl finds too large are distinguished from a lost connection by the bytes received")
  func largeHead() {
    #expect(code(56, .head(byteCount: 300_000)) == .tooLarge)
    #expect(code(56, .head(byteCount: 204_801)) == .tooLarge)
    #expect(code(56, .head(byteCount: 204_800)) == .connectionLost)
    #expect(code(56, system: 104, .head(byteCount: 300_000)) == .connectionLost)
    #expect(code(56, alert: .init(number: 50, isOwn: true), .head(byteCount: 300_000)) == .connectionLost)
    #expect(code(100, .head(byteCount: 10)) == .tooLarge)
  }

  @Test("malformed chunks are a bad response whatever libcurl's code, and truncated ones are a lost connection")
  func chunks() {
    for number: Int32 in [8, 18, 23, 27, 43, 56, 61, 100] {
      #expect(code(number, .chunks(.broken)) == .badServerResponse, "\(number)")
      #expect(code(number, .chunks(.tooLong)) == .tooLarge, "\(number)")
    }
    #expect(code(18, .chunks(.incomplete)) == .connectionLost)
    #expect(code(56, .chunks(.incomplete)) == .connectionLost)
    #expect(code(56, .chunks(.complete)) == .connectionLost)
    #expect(code(56, .body) == .connectionLost)
  }

  @Test("a coding error within headers concerns the transfer, and a reset stream means malformed headers")
  func withinHead() {
    #expect(code(61, .head(byteCount: 17)) == .badServerResponse)
    #expect(code(61, .body) == .cannotDecode)
    #expect(code(92, .head(byteCount: 17)) == .badServerResponse)
    #expect(code(92, .nothing) == .connectionLost)
    #expect(code(92, .body) == .connectionLost)
  }

  @Test("a TLS alert from the server is a TLS failure, even while the request is being sent")
  func alerts() {
    let unknownCA = CurlFailure.Alert(number: 48, isOwn: false)
    for number: Int32 in [55, 56] {
      #expect(code(number, alert: unknownCA, .nothing) == .tlsFailed)
      #expect(code(number, alert: unknownCA, .body) == .connectionLost)
      // An alert that we have sent means that the connection was cut.
      #expect(code(number, alert: .init(number: 50, isOwn: true), .nothing) == .connectionLost)
    }
    for number: Int32 in [35, 55, 56] {
      #expect(code(number, alert: .init(number: 116, isOwn: false), .nothing) == .clientCertificateRequired)
      #expect(code(number, alert: .init(number: 40, isOwn: false), .nothing) == .tlsFailed)
      #expect(
        code(number, wanted: true, alert: .init(number: 40, isOwn: false), .nothing) == .clientCertificateRequired)
    }
  }

  @Test("an argument that libcurl rejects during the TLS handshake is the certificate")
  func certificates() {
    func code(isSecuring: Bool, proxy: Bool = false, connect: Int = 0) -> HTTP.Error.Code {
      CurlFailure(
        code: 43, text: "", systemError: 0, connectStatus: connect, usesProxy: proxy, wasConnected: false,
        isBeforeAnswer: true, wantedCertificate: false, isSecuring: isSecuring
      ).errorCode
    }
    #expect(code(isSecuring: true) == .tlsFailed)
    #expect(code(isSecuring: false) == .invalidRequest)
    #expect(code(isSecuring: true, proxy: true) == .proxyFailed)
    #expect(code(isSecuring: true, proxy: true, connect: 200) == .tlsFailed)
  }

  @Test("the text of libcurl's error never affects the mapping")
  func texts() {
    let texts = [
      "Illegal or missing hexadecimal sequence in chunked-encoding", "Out of memory in chunked-encoding",
      "Too large response headers: 307300 > 307200", "CONNECT tunnel failed, response 403",
      "OpenSSL SSL_read: OpenSSL/3.0.19: error:0A000418:SSL routines::tlsv1 alert unknown ca, errno 0",
      "tlsv13 alert certificate required", "peer did not return a certificate",
      "HTTP/2 stream 1 was not closed cleanly: PROTOCOL_ERROR (err 1)", "Es ging etwas schief", "\u{1}",
    ]
    let alerts: [CurlFailure.Alert?] = [nil, .init(number: 48, isOwn: false), .init(number: 50, isOwn: true)]
    let steps: [CurlFailure.Progress] = [
      .nothing, .head(byteCount: 10), .head(byteCount: 250_000), .body, .chunks(.incomplete), .chunks(.broken),
    ]
    for number in Int32(1)...110 {
      for (alert, progress) in alerts.flatMap({ alert in steps.map { (alert, $0) } }) {
        for state in 0..<16 {
          func code(_ text: String) -> HTTP.Error.Code {
            CurlFailure(
              code: number, text: text, systemError: state & 1 == 0 ? 0 : 104, connectStatus: state & 2 == 0 ? 0 : 403,
              usesProxy: state & 4 != 0, wasConnected: state & 8 != 0, isBeforeAnswer: progress == .nothing,
              wantedCertificate: false, alert: alert, progress: progress
            ).errorCode
          }
          let expected = code("")
          for text in texts where code(text) != expected { Issue.record("\(number) \(progress) \(state): \(text)") }
        }
      }
    }
  }

  @Test("a kept HTTP/2 connection that accepts no more requests is lost", arguments: [true, false])
  func endOfKept(_ wasKept: Bool) {
    let failure = CurlFailure(
      code: 16, text: "", systemError: 0, connectStatus: 0, usesProxy: false, wasConnected: true, isBeforeAnswer: true,
      wantedCertificate: false, wasKept: wasKept)
    #expect(failure.isEndOfKept == wasKept)
    #expect(failure.errorCode == (wasKept ? .connectionLost : .badServerResponse))
  }
}
