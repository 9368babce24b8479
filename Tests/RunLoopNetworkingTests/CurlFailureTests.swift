// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopNetworking

/// Which error each of libcurl's numbers is.
@Suite struct CurlFailureTests {
  private func name(_ code: Int32, connected: Bool, proxy: Bool = false) -> String {
    CurlFailure(
      code: code, text: "", systemError: 0, connectStatus: 0, usesProxy: proxy, wasConnected: connected,
      isBeforeAnswer: true, wantedCertificate: false
    ).errorCode.name
  }

  /// All numbers with an error of its own: after the request was about to be sent, and before.
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

  @Test("every number of libcurl is an error of ours, in every state, and those without one are a lost connection")
  func everyNumber() {
    for code in Int32(1)...200 {
      let expected = Self.table.first { $0.0 == code }
      #expect(name(code, connected: true) == expected?.1 ?? "connectionLost", "\(code)")
      #expect(name(code, connected: false) == expected?.2 ?? "connectionLost", "\(code)")
    }
  }

  @Test("what fails before a connection through a proxy is the proxy's")
  func proxies() {
    let proxys = (Int32(1)...200).filter {
      name($0, connected: false, proxy: true) != name($0, connected: false)
    }
    #expect(proxys == [7, 35, 43, 55, 56])
    #expect(proxys.allSatisfy { name($0, connected: false, proxy: true) == "proxyFailed" })
  }

  @Test("a head that libcurl finds too large is distinguished from a lost connection by its text")
  func largeHead() {
    let failure = CurlFailure(
      code: 56, text: "Too large response headers: 307300 > 307200", systemError: 0, connectStatus: 0,
      usesProxy: false, wasConnected: true, isBeforeAnswer: false, wantedCertificate: false)
    #expect(failure.errorCode == .tooLarge)
  }

  @Test("an alert of the server is a failure of the encryption, also if the request is on its way when it comes")
  func alerts() {
    let text = "OpenSSL SSL_read: OpenSSL/3.0.19: error:0A000418:SSL routines::tlsv1 alert unknown ca, errno 0"
    func code(isBeforeAnswer: Bool) -> HTTP.Error.Code {
      CurlFailure(
        code: 56, text: text, systemError: 0, connectStatus: 0, usesProxy: false, wasConnected: true,
        isBeforeAnswer: isBeforeAnswer, wantedCertificate: false
      ).errorCode
    }
    #expect(code(isBeforeAnswer: true) == .tlsFailed)
    #expect(code(isBeforeAnswer: false) == .connectionLost)
  }

  @Test("a kept connection of HTTP/2 that takes no more requests is lost", arguments: [true, false])
  func endOfKept(_ wasKept: Bool) {
    let failure = CurlFailure(
      code: 16, text: "", systemError: 0, connectStatus: 0, usesProxy: false, wasConnected: true, isBeforeAnswer: true,
      wantedCertificate: false, wasKept: wasKept)
    #expect(failure.isEndOfKept == wasKept)
    #expect(failure.errorCode == (wasKept ? .connectionLost : .badServerResponse))
  }
}
