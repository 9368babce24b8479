// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopURLConnection
import TestSupport
import Testing

@testable import RunLoopHTTP

@Suite("Delegate questions and reports of NSURLConnection")
struct ExchangeTests {
  @Test("a redirect is followed, rewritten or taken as the response, as the delegate decides")
  func redirects() async throws {
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/moved": exchange.answer("moved", status: "302 Found", "Location: /there")
      default: exchange.answer("at \(exchange.path)")
      }
    }
    await elsewhere {
      let followed = load(server.request("/moved"))
      #expect(followed.log.text == "redirect 302 response 200 data finish")
      #expect(followed.text == "at /there")
      let rewritten = load(server.request("/moved")) { recorder in
        recorder.redirect = { request, _ in
          var request = request
          request.url = URL(string: "/elsewhere", relativeTo: request.url)
          return request
        }
      }
      #expect(rewritten.text == "at /elsewhere")
      let taken = load(server.request("/moved")) { $0.redirect = { _, _ in nil } }
      #expect(taken.log.text == "redirect 302 response 302 data finish")
      #expect(taken.text == "moved")
    }
  }

  @Test(
    "a body is decoded if the client or the request has requested its encoding",
    arguments: [
      ([:], 200, "hello"), (["Accept-Encoding": "gzip;q=1.0, compress;q=0.5"], 200, "hello"),
      (["Accept-Encoding": "identity"], 200, nil), (["Range": "bytes=0-24"], 206, nil),
      (["Range": "bytes=0-24", "Accept-Encoding": "gzip"], 206, nil),
    ] as [([String: String], Int, String?)])
  func decoding(_ fields: [String: String], _ status: Int, _ expected: String?) async throws {
    // "hello" in gzip.
    let bytes: [UInt8] = [
      31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
    ]
    let server = try LyingServer {
      $0.answer(bytes, status: "\(status) OK", ["Content-Encoding: gzip", "Content-Range: bytes 0-24/25"])
    }
    await elsewhere {
      var request = server.request("/")
      for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
      let loaded = load(request)
      #expect(loaded.body.value == (expected.map { Array($0.utf8) } ?? bytes))
      let operation = AFHTTPRequestOperation(request: request)
      operation.start()
      waitUntil { operation.isFinished }
      #expect(operation.responseData.map { [UInt8]($0) } == (expected.map { Array($0.utf8) } ?? bytes))
    }
  }

  @Test("a request for the cache only fails without a connection")
  func cacheOnly() async throws {
    let server = try LyingServer { $0.answer("asked") }
    await elsewhere {
      var request = server.request("/")
      request.cachePolicy = .returnCacheDataDontLoad
      let loaded = load(request)
      #expect(loaded.log.text == "fail \(URLError.Code.resourceUnavailable.rawValue)")
      #expect {
        try NSURLConnection.sendSynchronousRequest(request, returning: nil)
      } throws: {
        ($0 as? URLError)?.code == .resourceUnavailable
      }
      let operation = AFHTTPRequestOperation(request: request)
      operation.start()
      waitUntil { operation.isFinished }
      #expect((operation.error as? URLError)?.code == .resourceUnavailable)
      request.cachePolicy = .returnCacheDataElseLoad
      #expect(load(request).text == "asked")
    }
    #expect(server.requests.value.count == 1)
  }

  @Test("endless redirects are an error, and so is one to an unsupported URL")
  func endlessRedirects() async throws {
    let server = try LyingServer { exchange in
      exchange.answer("", status: "302 Found", "Location: \(exchange.path == "/file" ? "file:///etc" : "/again")")
    }
    await elsewhere {
      let endless = load(server.request("/again"))
      #expect(endless.log.entries.last == "fail \(URLError.Code.httpTooManyRedirects.rawValue)")
      #expect(endless.log.count(of: "redirect 302") == 20)
      #expect(load(server.request("/file")).failure.value?.code == .redirectToNonExistentLocation)
    }
  }

  @Test("secrets are not sent to another origin")
  func secrets() async throws {
    let other = try LyingServer { $0.answer($0.field("Authorization") ?? "none") }
    let server = try LyingServer { exchange in
      exchange.answer(
        "", status: "302 Found", "Location: \(exchange.path == "/away" ? other.url() : "/here")")
      #expect(exchange.field("Authorization") == "secret" || exchange.path == "/here")
    }
    await elsewhere {
      var request = server.request("/away")
      request.setValue("secret", forHTTPHeaderField: "Authorization")
      #expect(load(request).text == "none")
    }
  }

  @Test("a delegate may respond to a challenge later on any thread, and is asked again if it was wrong")
  func challenges() async throws {
    let server = try LyingServer { exchange in
      let right = "Basic " + Data("user:right".utf8).base64EncodedString()
      if exchange.field("Authorization") == right {
        exchange.answer("welcome")
      } else {
        exchange.answer("who?", status: "401 No", "WWW-Authenticate: Basic realm=\"place\"")
      }
    }
    await elsewhere {
      let passwords = Box(["wrong", "right"])
      let asked = load(server.request()) { recorder in
        recorder.challenge = { challenge in
          let (sender, space) = (challenge.sender, challenge.protectionSpace)
          #expect(space.realm == "place" && space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
          let password = passwords.update { $0.removeFirst() }
          let answered = Sent(challenge)
          DispatchQueue.global().async {
            answered.challenge.sender?.use(
              URLCredential(user: "user", password: password, persistence: .none), for: answered.challenge)
          }
          withExtendedLifetime(sender) {}
        }
      }
      #expect(asked.log.text == "challenge 0 challenge 1 response 200 data finish")
      #expect(asked.text == "welcome")
      let rejected = load(server.request()) { $0.challenge = { $0.sender?.cancel($0) } }
      #expect(rejected.log.text == "challenge 0 fail \(URLError.Code.userCancelledAuthentication.rawValue)")
      let plain = load(server.request()) { $0.challenge = { $0.sender?.continueWithoutCredential(for: $0) } }
      #expect(plain.log.text == "challenge 0 response 401 data finish")
      #expect(plain.text == "who?")
      #expect(load(server.request()).log.text == "challenge 0 response 401 data finish")
    }
  }

  @Test("a credential that was sent with a stale nonce is sent again without another challenge")
  func staleNonces() async throws {
    let asked = Counter()
    let server = try LyingServer { exchange in
      let number = asked.add()
      if number == 3 { return exchange.answer("welcome") }
      let stale = number == 2 ? ", stale=true" : ""
      exchange.answer(
        "", status: "401 No", "WWW-Authenticate: Digest realm=\"r\", nonce=\"\(number)\", qop=\"auth\"\(stale)")
    }
    await elsewhere {
      let loaded = load(server.request()) { recorder in
        recorder.challenge = {
          $0.sender?.use(URLCredential(user: "user", password: "right", persistence: .none), for: $0)
        }
      }
      #expect(loaded.log.text == "challenge 0 response 200 data finish")
    }
  }

  @Test("failures with one server do not count for another, to which a redirect leads")
  func failuresElsewhere() async throws {
    @Sendable func answer(
      _ exchange: LyingServer.Exchange, _ password: String, _ status: String, _ fields: String...
    ) {
      let isRight = exchange.field("Authorization") == "Basic " + Data("user:\(password)".utf8).base64EncodedString()
      let line = isRight ? status : "401 No"
      exchange.answer([], status: line, isRight ? fields : ["WWW-Authenticate: Basic realm=\"r\""])
    }
    let other = try LyingServer { answer($0, "third", "200 OK") }
    let server = try LyingServer { answer($0, "second", "302 Found", "Location: \(other.url())") }
    await elsewhere {
      let passwords = Box(["first", "second", "third"])
      let loaded = load(server.request()) { recorder in
        recorder.challenge = {
          let password = passwords.update { $0.removeFirst() }
          $0.sender?.use(URLCredential(user: "user", password: password, persistence: .none), for: $0)
        }
      }
      #expect(loaded.log.text == "challenge 0 challenge 1 redirect 302 challenge 0 response 200 finish")
    }
  }

  @Test("errors are URLErrors with the URL, the text and the cause, and without secrets")
  func errors() async throws {
    let server = try LyingServer { exchange in
      switch exchange.path.split(separator: "?")[0] {
      case "/cut":
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
        exchange.end()
      case "/garbage": exchange.send("garbage\r\n\r\n")
      default: break
      }
    }
    await elsewhere {
      for (path, code) in [("/cut?key=secret", URLError.Code.networkConnectionLost), ("/garbage", .badServerResponse)] {
        let failed = load(server.request(path))
        #expect(failed.log.entries.last == "fail \(code.rawValue)")
        let info = failed.failure.value?.userInfo ?? [:]
        let plain = String(server.url(path).split(separator: "?")[0])
        #expect(info["NSErrorFailingURLStringKey"] as? String == plain)
        #expect(failed.failure.value?.failingURL == URL(string: plain))
        #expect(info[NSUnderlyingErrorKey] is HTTP.Error)
        #expect(failed.failure.value.map { !"\($0)".contains("secret") } == true)
      }
      var slow = server.request("/slow")
      slow.timeoutInterval = 0.05
      #expect(load(slow).failure.value?.code == .timedOut)
      let nowhere = URLRequest(url: URL(string: "http://nowhere.invalid/")!)
      #expect(load(nowhere).failure.value?.code == .cannotFindHost)
      let port = RefusingPort()
      defer { withExtendedLifetime(port) {} }
      let rejected = URLRequest(url: URL(string: "http://127.0.0.1:\(port.number)/")!)
      #expect(load(rejected).failure.value?.code == .cannotConnectToHost)
    }
  }

  @Test("every error code of the client maps to one of NSURLErrorDomain")
  func codes() {
    let codes: [HTTP.Error.Code] = [
      .cancelled, .timedOut, .cannotFindHost, .cannotConnect, .connectionLost, .badServerResponse, .tooManyRedirects,
      .redirectRejected, .untrusted, .tlsFailed, .clientCertificateRequired, .pinMismatch, .tooLarge, .cannotDecode,
      .resumeMismatch, .authenticationFailed, .unsupportedURL, .invalidRequest, .proxyFailed, .stopped, .noLibrary,
      .fileFailed, .notInCache, .connectionWaitTimedOut,
    ]
    #expect(
      codes.map(\.urlErrorCode.rawValue) == [
        -999, -1001, -1003, -1004, -1005, -1011, -1007, -1010, -1202, -1200, -1206, -1202, -1103, -1016, -1011, -1013,
        -1002, -1021, -1004, -2000, -2000, -3003, -1008, -1001,
      ])
    let error = HTTP.Error(.timedOut, url: "http://host/", "it took too long")
    #expect(error.localizedDescription == "timedOut (http://host/): it took too long")
    #expect(error.urlError.localizedDescription == error.localizedDescription)
  }

  @Test("cookies are those of the shared storage, unless the request disables them")
  func cookies() async throws {
    let name = "RunLoopURLConnectionTests\(UInt32.random(in: 0 ... .max))"
    let server = try LyingServer { exchange in
      exchange.answer(
        exchange.field("Cookie").map { $0.contains(name) } == true ? "known" : "unknown",
        "Set-Cookie: \(name)=1; Path=/; Expires=Wed, 01 Jan 2098 00:00:00 GMT")
    }
    await elsewhere {
      let url = URL(string: server.url())!
      defer {
        for cookie in HTTPCookieStorage.shared.cookies(for: url) ?? [] where cookie.name == name {
          HTTPCookieStorage.shared.deleteCookie(cookie)
        }
      }
      var without = server.request()
      without.httpShouldHandleCookies = false
      #expect(load(without).text == "unknown")
      #expect(load(server.request()).text == "unknown")
      #expect(load(server.request()).text == "known")
      #expect(load(without).text == "unknown")
    }
  }

  @Test("a body of data or of a stream is sent, with or without a length, and its progress is reported")
  func bodies() async throws {
    let server = try LyingServer { exchange in
      exchange.answer("\(exchange.body.count) \(exchange.field("Content-Length") ?? "chunked")")
    }
    await elsewhere {
      var data = server.request(method: "POST")
      data.httpBody = Data(pattern(100_000))
      let sent = load(data)
      #expect(sent.text == "100000 100000")
      #expect(sent.log.entries.contains("sent 100000"))
      var stream = server.request(method: "POST")
      stream.httpBodyStream = InputStream(data: Data(pattern(70_000)))
      #expect(load(stream).text == "70000 chunked")
      stream.httpBodyStream = InputStream(data: Data(pattern(70_000)))
      stream.setValue("70000", forHTTPHeaderField: "Content-Length")
      #expect(load(stream).text == "70000 70000")
      stream.httpBodyStream = InputStream(fileAtPath: "/nonexistent")
      #expect(load(stream).failure.value?.code == .requestBodyStreamExhausted)
    }
  }

  @Test("a stream that must be resent is requested from the delegate")
  func newBodyStream() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/moved" {
        exchange.answer("", status: "307 Elsewhere", "Location: /there")
      } else {
        exchange.answer("\(exchange.body.count)")
      }
    }
    await elsewhere {
      var request = server.request("/moved", method: "POST")
      request.httpBodyStream = InputStream(data: Data(pattern(1000)))
      let again = load(request) { $0.stream = { InputStream(data: Data(pattern(2000))) } }
      #expect(again.text == "2000")
      #expect(again.log.entries.contains("stream"))
      request.httpBodyStream = InputStream(data: Data(pattern(1000)))
      #expect(load(request).failure.value?.code == .requestBodyStreamExhausted)
    }
  }

  @Test("a response has its headers, and a decoded one no length")
  func heads() async throws {
    let response = HTTP.Response(
      status: 201, headers: HTTP.Headers([.init("X-One", "a"), .init("x-one", "b"), .init("Content-Length", "7")]),
      url: "http://host/path")
    let answer = try #require(response.urlResponse)
    #expect(answer.statusCode == 201)
    #expect(answer.value(forHTTPHeaderField: "X-One") == "a, b")
    #expect(answer.expectedContentLength == 7)
    var coded = HTTP.Response(
      status: 200, headers: ["Content-Length": "7", "Content-Encoding": "gzip"], url: "http://host/path")
    #expect(coded.urlResponse?.expectedContentLength == 7)
    coded.decodedFrom = ["gzip"]
    #expect(coded.urlResponse?.expectedContentLength == -1)
  }
}

/// Transfers a challenge to another thread.
private struct Sent: @unchecked Sendable {
  // Sendable: the threads use it one after the other.
  let challenge: URLAuthenticationChallenge
  init(_ challenge: URLAuthenticationChallenge) { self.challenge = challenge }
}
