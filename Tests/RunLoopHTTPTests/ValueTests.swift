// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopHTTP

/// Rules and digests that need no connection.
@Suite struct ValueTests {
  @Test("digests and Base64 have the values of their standards")
  func digests() {
    #expect(hexadecimal(MD5.digest([])) == "d41d8cd98f00b204e9800998ecf8427e")
    #expect(
      hexadecimal(MD5.digest(Array("The quick brown fox jumps over the lazy dog".utf8)))
        == "9e107d9d372bb6826bd81d3542a419d6")
    #expect(
      hexadecimal(SHA256.digest(Array("abc".utf8)))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    let million = [UInt8](repeating: 97, count: 1_000_000)
    #expect(hexadecimal(SHA256.digest(million)) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    for (bytes, digest) in [
      ([], "c672b8d1ef56ed28ab87c3622c5114069bdd3ad7b8f9737498d0c01ecef0967a"),
      (Array("abc".utf8), "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
      ([UInt8](repeating: 120, count: 119), "2fa82e22c09850847719c2c658964afdd442ca7a72a91693db765e4b4a8b4876"),
      (million, "9a59a052930187a97038cae692f30708aa6491923ef5194394dc68d56c74fb21"),
    ] { #expect(hexadecimal(SHA512.digest256(bytes)) == digest) }
    #expect(["", "f", "fo", "foo", "foob"].map { base64(Array($0.utf8)) } == ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="])
  }

  @Test("several challenges in one header are distinguished, and the safest is chosen")
  func challenges() {
    let text = "Basic realm=\"a, b\", Digest realm=\"r\", nonce=\"n\\\"x\", qop=\"auth, auth-int\", Negotiate"
    let read = Challenge.read(text)
    #expect(read.map(\.scheme) == ["basic", "digest", "negotiate"])
    #expect(read[0].parameters == ["realm": "a, b"])
    #expect(read[1].parameters["nonce"] == "n\"x")
    #expect(Challenge.best(of: ["WWW-Authenticate": text])?.scheme == "digest")
    #expect(Challenge.best(of: ["WWW-Authenticate": "Negotiate, NTLM"]) == nil)
    for value in ["YII/a+b==", "TlRM/", "a", ""] {
      #expect(Challenge.read("NTLM \(value) ,Basic realm=x").map(\.scheme) == ["ntlm", "basic"], "\(value)")
      let last = Challenge.best(of: ["WWW-Authenticate": "Digest nonce=\"a\", NTLM \(value)"])
      #expect(last?.parameters == ["nonce": "a"], "\(value)")
    }
    #expect(
      Challenge.best(of: ["WWW-Authenticate": "Digest nonce=\"n\", qop=\"auth-conf\", Basic realm=x"])?.scheme
        == "basic"
    )
  }

  @Test("whether a body can be digested is determined once for all challenges, and only if needed")
  func digestibility() {
    func outcome(_ challenges: [String], canBeDigested: Bool = true) -> String {
      let headers = HTTP.Headers(challenges.map { HTTP.Headers.Field("WWW-Authenticate", $0) })
      var count = 0
      let best = Challenge.best(of: headers, "WWW-Authenticate") {
        count += 1
        return canBeDigested
      }
      return "\(count) \(best?.scheme ?? "none")"
    }
    let protecting = [String](repeating: "Digest nonce=\"n\", qop=\"auth-int\"", count: 1000)
    #expect(outcome(protecting) == "1 digest")
    #expect(outcome(protecting + ["Basic realm=\"r\""], canBeDigested: false) == "1 basic")
    #expect(outcome(["Basic realm=\"r\"", "Digest nonce=\"n\", qop=\"auth\""]) == "0 digest")
    #expect(outcome([]) == "0 none")
  }

  @Test("the Digest response is that of RFC 7616's examples")
  func digestAnswers() {
    let credential = HTTP.Credential(user: "Mufasa", password: "Circle of Life")
    let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
    for (algorithm, response) in [
      ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
      ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ] {
      let challenge = Challenge.read(
        "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=\(algorithm), nonce=\"\(nonce)\"")[0]
      let answer = challenge.answer(
        credential, method: .get, target: "/dir/index.html",
        clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
      #expect(answer.contains("response=\"\(response)\""))
      let later = challenge.answer(credential, method: .get, target: "/", clientNonce: "c", use: 26)
      #expect(later.contains("nc=0000001a"))
    }
  }

  @Test(
    "Digest authentication with SHA-512/256, and with the digest of a body",
    arguments: [
      (
        "SHA-512-256", "auth-int,auth", .get, "/", nil,
        "0875229d322b95b09a7be531d2a39b5fdc252ac3248ca3fd100e1f162e166ff4"
      ),
      (
        "SHA-512-256", "auth-int", .post, "/x", "body",
        "5b432d627cb8a829530857cffd82632d3446fcaf14b81d0c344080fb1b5e0ccb"
      ),
      ("MD5", "auth-int", .post, "/x", "body", "ad6a657608d77151bc35da1ef147601c"),
      ("MD5", "auth-int", .get, "/x", nil, "65e74764734664c67e86135afd389c7b"),
    ] as [(String, String, HTTP.Method, String, String?, String)])
  func digestsOfBodies(
    _ algorithm: String, _ qop: String, _ method: HTTP.Method, _ target: String, _ body: String?, _ response: String
  ) throws {
    let headers: HTTP.Headers = [
      "WWW-Authenticate": "Digest realm=\"realm\", nonce=\"nonce\", qop=\"\(qop)\", algorithm=\(algorithm)"
    ]
    let credential = HTTP.Credential(user: "user", password: "password")
    let scratch = Scratch()
    scratch.make("body", text: body ?? "")
    for content in [body.map { HTTP.Content.text($0) }, body.map { _ in HTTP.Content.file(scratch("body")) }] {
      let challenge = try #require(Challenge.best(of: headers, body: content))
      let answer = challenge.answer(
        credential, method: method, target: target, clientNonce: "client", body: content)
      #expect(answer.contains("response=\"\(response)\""))
      #expect(answer.contains(qop.contains("auth,") || qop.hasSuffix(",auth") ? "qop=auth," : "qop=auth-int,"))
    }
    // A sequence may produce other bytes the next time.
    let stream = HTTP.Content.stream { AsyncStream<[UInt8]> { $0.finish() } }
    #expect((Challenge.best(of: headers, body: stream) == nil) == (qop == "auth-int"))
    #expect((Challenge.best(of: headers, body: .file(scratch("none"))) == nil) == (qop == "auth-int"))
  }

  @Test("a proxy's credentials appear in no text of a configuration")
  func proxyTexts() {
    var configuration = HTTP.Configuration()
    configuration.proxy = .url("http://user:hidden@proxy.example:3128")
    configuration.trust.certificate = .init(chain: "/c", key: "/k", password: "hidden")
    configuration.credential = HTTP.Credential(user: "user", password: "hidden")
    var dumped = ""
    dump(configuration, to: &dumped)
    #expect(!"\(configuration) \(String(reflecting: configuration)) \(dumped)".contains("hidden"))
    #expect(configuration.proxy.description == "proxy http://proxy.example:3128/")
  }

  @Test("a password appears in no text of its credentials")
  func secretTexts() {
    let credential = HTTP.Credential(user: "u", password: "secret")
    #expect(!"\(credential) \(String(reflecting: credential))".contains("secret"))
    var text = ""
    dump(credential, to: &text)
    #expect(!text.contains("secret"))
  }

  @Test("redirects change method and body as RFC 9110 specifies")
  func redirects() throws {
    let hop = HTTP.Hop(
      address: try WebAddress("http://a/x"), method: .post, headers: ["Content-Type": "t", "A": "b"], body: .text("x"))
    for (status, method, keepsBody) in [
      (301, .get, false), (302, .get, false), (303, .get, false), (307, .post, true), (308, .post, true),
    ] as [(HTTP.Status, HTTP.Method, Bool)] {
      let next = try hop.following(status, to: "/y")
      #expect(next.method == method)
      #expect((next.body != nil) == keepsBody)
      #expect((next.headers["Content-Type"] != nil) == keepsBody)
      #expect(next.headers["A"] == "b")
    }
    var put = hop
    put.method = .put
    #expect(try put.following(302, to: "/y").method == .put)
    #expect(try put.following(303, to: "/y").method == .get)
    put.method = .head
    #expect(try put.following(303, to: "/y").method == .head)
  }

  @Test(
    "secrets are only sent to their origin",
    arguments: [
      ("http://a/y", true), ("//a:80/y", true), ("http://b/", false), ("https://a/", false), ("http://a:81/", false),
    ])
  func secrets(_ location: String, _ stays: Bool) throws {
    let hop = HTTP.Hop(
      address: try WebAddress("http://a/x"), method: .get,
      headers: ["Authorization": "s", "cookie": "s", "Proxy-Authorization": "s", "A": "b"])
    let next = try hop.following(302, to: location)
    for name in ["Authorization", "Cookie", "Proxy-Authorization"] { #expect((next.headers[name] != nil) == stays) }
    #expect(next.headers["A"] == "b")
  }

  @Test("the delay before a retry doubles up to a limit, and is at least half of that")
  func delays() {
    let retry = HTTP.Retry(maximumCount: 9)
    #expect(
      (1...7).map { retry.delay(before: $0, chance: 0) }
        == [100, 200, 400, 800, 1600, 2000, 2000].map { .milliseconds($0) })
    #expect(retry.delay(before: 1, chance: 1) == .milliseconds(50))
    #expect(retry.delay(before: .max, chance: 0) == .seconds(2))
    #expect(HTTP.Retry.retryAfter(["Retry-After": "7"], now: 0) == .seconds(7))
    #expect(HTTP.Retry.retryAfter(["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"], now: 784_111_770) == .seconds(7))
    #expect(HTTP.Retry.retryAfter(["Retry-After": "soon"], now: 0) == nil)
    #expect(HTTP.Retry.retryAfter(["Retry-After": "999999999999999999999"], now: 0) == .seconds(1 << 30))
  }

  @Test("cookies are sent to their hosts and paths only")
  func cookies() throws {
    let jar = CookieJar()
    let (secure, plain) = (try WebAddress("https://www.example.org/a/b"), try WebAddress("http://www.example.org/a/b"))
    jar.take(
      HTTP.Headers([
        .init("Set-Cookie", "host=1"), .init("Set-Cookie", "domain=2; Domain=.Example.org; Path=/"),
        .init("Set-Cookie", "secure=3; Secure; Path=/"), .init("Set-Cookie", "foreign=4; Domain=other.org"),
        .init("Set-Cookie", "top=5; Domain=org"), .init("Set-Cookie", "past=6; Max-Age=-1"),
        .init("Set-Cookie", "late=7; Expires=Sun, 06 Nov 1994 08:49:37 GMT"), .init("Set-Cookie", "=8"),
        .init("Set-Cookie", "x"),
        .init("Set-Cookie", "path=9; Path=/a/b/c"),
      ]), from: secure, now: 1_000_000_000)
    func header(_ url: String, now: Int64 = 1_000_000_000) throws -> String? {
      jar.header(for: try WebAddress(url), now: now)
    }
    #expect(try header("https://www.example.org/a/c") == "host=1; domain=2; secure=3")
    #expect(try header("http://www.example.org/a") == "host=1; domain=2")
    #expect(try header("http://www.example.org/ab") == "domain=2")
    #expect(try header("http://example.org/a") == "domain=2")
    #expect(try header("http://other.org/") == nil)
    #expect(try header("https://www.example.org/a/b/c/d") == "path=9; host=1; domain=2; secure=3")
    jar.take(["Set-Cookie": "secure=stolen; Secure; Path=/"], from: plain, now: 1_000_000_000)
    #expect(try header("https://www.example.org/")?.contains("stolen") == false)
    jar.take(["Set-Cookie": "domain=; Domain=example.org; Path=/; Max-Age=0"], from: plain, now: 1_000_000_000)
    #expect(try header("http://example.org/") == nil)
  }

  @Test("a cookie jar is bounded, whatever a server sets")
  func boundedJar() throws {
    let jar = CookieJar()
    let address = try WebAddress("http://a/")
    for number in 0..<200 { jar.take(["Set-Cookie": "c\(number)=1"], from: address) }
    #expect(jar.all.count == CookieJar.domainLimit)
    #expect(jar.all.last?.name == "c199")
    jar.take(["Set-Cookie": "big=" + String(repeating: "x", count: 5000)], from: address)
    #expect(!jar.all.contains { $0.name == "big" })
  }

  @Test("the environment's proxies are chosen by scheme and host")
  func proxies() throws {
    let variables = ["http_proxy": "p:1", "https_proxy": "http://u:x@q:2", "no_proxy": "localhost, .inside.example"]
    let choice = ProxyChoice(.environment) { variables[$0] }
    func proxy(_ url: String) throws -> String? { try choice.proxy(for: WebAddress(url))?.address.origin }
    #expect(try proxy("http://a/") == "http://p:1")
    #expect(try proxy("https://a/") == "http://q:2")
    #expect(try proxy("https://localhost/") == nil)
    #expect(try proxy("http://a.inside.example/") == nil)
    #expect(try proxy("http://notinside.example/") == "http://p:1")
    #expect(throws: HTTP.Error.self) { try ProxyChoice(.url("ftp://x")).proxy(for: WebAddress("http://a/")) }
  }

  @Test("hosts without a proxy are named in curl's syntax, or with a port")
  func proxyExceptions() throws {
    func covers(_ text: String, _ urls: String...) throws -> [Bool] {
      try urls.map { ProxyException(text).covers(try WebAddress($0)) }
    }
    #expect(
      try covers("example.org", "http://example.org/", "http://a.example.org/", "http://notexample.org/") == [
        true, true, false,
      ])
    #expect(try covers("*.example.org.", "http://a.example.org/", "http://b.org/") == [true, false])
    #expect(try covers("a:8080", "http://a:8080/", "http://a/", "http://b:8080/") == [true, false, false])
    #expect(try covers("*", "http://a/", "https://[::1]:7/") == [true, true])
    #expect(
      try covers("10.1.0.0/12", "http://10.15.0.1/", "http://10.16.0.1/", "http://[::1]/") == [true, false, false])
    #expect(try covers("127.0.0.1:81", "http://127.0.0.1:81/", "http://127.0.0.1/") == [true, false])
    #expect(try covers("fd00::/9", "http://[fd7f::1]/", "http://[fd80::1]/", "http://a/") == [true, false, false])
    #expect(try covers("::1", "http://[::1]/", "http://[::2]/") == [true, false])
    #expect(try covers("[::1]:81", "http://[::1]:81/", "http://[::1]/") == [true, false])
    #expect(try covers("10.0.0.0/99", "http://10.0.0.0/") == [false])
    #expect(try covers("1.2.3.4", "http://4.1.2.3.4.example/", "http://1.2.3.4/") == [false, true])
    #expect(try covers("localhost", "http://localhost./", "http://a.localhost./") == [true, true])
    #expect(try covers("127.0.0.1", "http://127.1/", "http://2130706433/", "http://127.2/") == [true, true, false])
    #expect(try covers("127.0.0.0/8", "http://0x7f000001/", "http://0x80000001/") == [true, false])
    for text in ["", ".", "/", ":", "/8", "a/8", "[", "]:1"] { #expect(try covers(text, "http://a/") == [false]) }
  }

  @Test("a cookie prefix is enforced, and a cookie with a control character is rejected")
  func promisedCookies() throws {
    let jar = CookieJar()
    let (plain, safe) = (try WebAddress("http://example.org/a/"), try WebAddress("https://example.org/a/"))
    for (text, address) in [
      ("__Secure-a=1", plain), ("__secure-b=1", safe), ("__Host-c=1; Path=/", plain), ("__Host-d=1; Secure", safe),
      ("__Host-e=1; Secure; Path=/; Domain=example.org", safe), ("__HOST-f=1; Secure; Path=/a", safe),
      ("g=\u{1}", safe),
      ("h\u{7f}=1", safe), ("__Secure-i=1; Secure", safe), ("__Host-j=1; Secure; Path=/", safe), ("k=\t1", safe),
    ] { jar.take(["Set-Cookie": text], from: address) }
    #expect(jar.all.map(\.name) == ["__Secure-i", "__Host-j", "k"])
  }

  @Test("a secure cookie is not replaced over an unencrypted connection")
  func secureCookies() throws {
    let jar = CookieJar()
    let (secure, plain) = (try WebAddress("https://www.example.org/a/"), try WebAddress("http://www.example.org/a/b"))
    jar.take(["Set-Cookie": "s=1; Secure; Path=/a; Domain=example.org"], from: secure, now: 0)
    for text in ["s=2; Path=/a; Domain=example.org", "s=2; Path=/a", "s=2; Path=/a; Domain=example.org; Max-Age=0"] {
      #expect(jar.take(["Set-Cookie": text], from: plain, now: 0).isEmpty)
      #expect(jar.header(for: secure, now: 0) == "s=1")
    }
    // Another name, and a path that the secure one does not cover.
    #expect(jar.take(["Set-Cookie": "t=2; Path=/a"], from: plain, now: 0).count == 1)
    #expect(jar.take(["Set-Cookie": "s=3; Path=/"], from: plain, now: 0).count == 1)
    #expect(jar.take(["Set-Cookie": "s=4; Path=/a; Domain=example.org"], from: secure, now: 0).count == 1)
    #expect(jar.header(for: secure, now: 0) == "t=2; s=4; s=3")
  }

  @Test("the end of a partial response is a number that can be incremented")
  func contentRanges() {
    #expect(ContentRange("bytes 5-9223372036854775807/*") == nil)
    #expect(ContentRange("bytes 5-9223372036854775806/*")?.bounds?.upperBound == Int64.max - 1)
    #expect(ContentRange("bytes 5-9223372036854775806/9223372036854775807")?.total == .max)
    #expect(ContentRange("bytes 5-9223372036854775808/*") == nil)
  }

  @Test("a connect timeout is at least a millisecond, as zero would mean libcurl's default")
  func connectTimes() {
    let times: [Duration] = [
      .zero, .microseconds(999), .seconds(-1), .milliseconds(1), .seconds(30), .seconds(1 << 40),
    ]
    #expect(times.map(Attempt.milliseconds(ofConnectTimeout:)) == [1, 1, 1, 1, 30_000, Int(Int32.max)])
  }

  @Test("a validator that cannot be sent is ignored")
  func validators() {
    #expect(Validator(text: "\"1\"")?.text == "\"1\"")
    #expect(Validator(text: "\"1\r\nX: y\"") == nil)
    #expect(Validator(["ETag": "\"1\u{1}\""]) == nil)
  }

  @Test("the note beside a partial file is read as written, and no other text is accepted")
  func notes() {
    let note = PartNote(url: "http://a/\"b\\c\u{1}", validator: "\"tag\"", total: 77)
    #expect(PartNote(text: note.text) == note)
    for text in [
      "", "{}", "{\"url\": \"a\"}", "[1]", "{\"url\": 1, \"validator\": \"x\", \"total\": 1}",
      String(note.text.dropLast(5)), "{\"url\": \"a\", \"validator\": \"b\", \"total\": -1}",
    ] {
      #expect(PartNote(text: text) == nil)
    }
    #expect(PartNote.name(of: "http://u:p@a/b?q") != PartNote.name(of: "http://u:p@a/b?r"))
    #expect(!PartNote.name(of: "http://u:p@a/b?q").contains("u:p"))
  }

  @Test("a client's life ends when it was stopped and no work is left")
  func life() {
    var life = ClientLife()
    #expect(life.begin() == true)
    #expect(!life.isOver)
    #expect(life.stop(.afterPendingWork) == .drain)
    #expect(life.stop(.afterPendingWork) == .nothing)
    #expect(life.begin() == false)
    #expect(!life.isOver)
    #expect(life.stop(.immediately) == .cut)
    #expect(life.stop(.immediately) == .nothing)
    life.end(HTTP.Error(.stopped, ""))
    #expect(life.isOver)
    life.finish()
    #expect(life.state == .finished)
    #expect(life.report.stoppedCount == 1)
    #expect(life.report.rejectedCount == 1)
  }

  @Test("errors of libcurl are distinguished by more than their code")
  func failures() {
    func code(
      _ code: Int32, system: Int32 = 0, connect: Int = 0, proxy: Bool = false, connected: Bool = true,
      wanted: Bool = false
    ) -> String {
      CurlFailure(
        code: code, text: "", systemError: system, connectStatus: connect, usesProxy: proxy, wasConnected: connected,
        isBeforeAnswer: true, wantedCertificate: wanted
      ).errorCode.name
    }
    #expect(code(56, system: 104) == "connectionLost")
    #expect(code(56, connect: 403, proxy: true, connected: false) == "proxyFailed")
    #expect(code(56, wanted: true) == "clientCertificateRequired")
    #expect(code(7) == "cannotConnect")
    #expect(code(7, proxy: true) == "proxyFailed")
    #expect(code(27) == "tooLarge")
    #expect(code(27, connected: false) == "cannotConnect")
    #expect(code(35) == "tlsFailed")
    #expect(code(60) == "untrusted")
    #expect(code(90) == "pinMismatch")
    #expect(code(92) == "connectionLost")
    #expect(code(12345) == "connectionLost")
  }
}
