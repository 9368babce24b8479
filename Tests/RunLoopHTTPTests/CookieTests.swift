// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopHTTP

/// Cookies that the program creates, sets, saves and loads.
@Suite struct CookieTests {
  @Test("a cookie that the program sets is sent, and an expired one removes it")
  func setting() async throws {
    let server = try LyingServer { $0.answer($0.field("Cookie") ?? "none") }
    try await withClient {
      $0.storesCookies = true
    } _: { client in
      let port = Int(server.url().split(separator: ":")[2].prefix { $0 != "/" })
      client.setCookies([try HTTP.Cookie(name: "a", value: "b", domain: "127.0.0.1", port: port)])
      #expect(await end(client, HTTP.Request(server.url())) == "200 a=b")
      client.setCookies([try HTTP.Cookie(name: "a", value: "", domain: "127.0.0.1", port: port, expires: 1)])
      #expect(client.cookies.isEmpty)
      #expect(await end(client, HTTP.Request(server.url())) == "200 none")
    }
  }

  @Test("saved cookies are loaded unchanged")
  func saving() throws {
    let scratch = Scratch()
    let cookies = [
      try HTTP.Cookie(name: "a", value: "b=c d", domain: "Example.ORG"),
      try HTTP.Cookie(
        name: "b", value: "", domain: "example.org", isHostOnly: false, port: 8080, path: "/x", isSecure: true,
        expires: 4_000_000_000),
      try HTTP.Cookie(name: "__Host-c", value: "é", domain: "::1", isSecure: true),
    ]
    let (client, other) = (HTTP.Client(), HTTP.Client())
    client.setCookies(cookies)
    try client.saveCookies(to: scratch("jar"))
    try other.loadCookies(from: scratch("jar"))
    #expect(other.cookies == cookies)
    #expect(cookies[0].domain == "example.org")
    // The lines that curl reads, without the one for another port.
    let text = String(decoding: RunLoopTestPath.read(scratch("jar")) ?? [], as: UTF8.self)
    #expect(text.contains("\nexample.org\tFALSE\t/\tFALSE\t0\ta\tb=c d\n#Port_8080_.example.org\tTRUE\t/x\t"))
  }

  @Test("a cookie file written by curl is read")
  func foreign() throws {
    let text =
      "# Netscape HTTP Cookie File\r\n# a comment\r\n\r\n#HttpOnly_.example.org\tTRUE\t/\tTRUE\t4000000000\ta\tb\r\n"
      + "host.example.org\tFALSE\t/p\tFALSE\t0\tempty\n"
    let cookies = try CookieFile.cookies(in: text)
    try #require(cookies.map(\.name) == ["a", "empty"])
    #expect(cookies[0].domain == "example.org" && !cookies[0].isHostOnly && cookies[0].isSecure)
    #expect(cookies[1].isHostOnly && cookies[1].value.isEmpty && cookies[1].expires == nil)
  }

  @Test(
    "a cookie file with an invalid line is an error that names the line, and nothing is loaded",
    arguments: [
      "nonsense", "a\tFALSE\t/\tFALSE\tsoon\tn\tv", "a\tFALSE\tpath\tFALSE\t0\tn\tv", "a b\tFALSE\t/\tFALSE\t0\tn\tv",
      "#Port_x_a\tFALSE\t/\tFALSE\t0\tn\tv", "a\tFALSE\t/\tFALSE\t0\tn\tv\tw", ".org\tTRUE\t/\tFALSE\t0\tn\tv",
    ])
  func brokenFiles(_ line: String) throws {
    let scratch = Scratch()
    scratch.make("jar", text: "a\tFALSE\t/\tFALSE\t0\tn\tv\n\(line)\n")
    let client = HTTP.Client()
    #expect {
      try client.loadCookies(from: scratch("jar"))
    } throws: {
      guard let error = $0 as? HTTP.Error else { return false }
      return error.code == .fileFailed && error.detail.hasPrefix("line 2: ")
    }
    #expect(client.cookies.isEmpty)
  }

  @Test("a cookie file that is missing or cannot be written is an error")
  func missingFiles() {
    let scratch = Scratch()
    scratch.makeDirectory("folder")
    for path in [scratch("none"), scratch("folder"), "/tmp/a\0b"] {
      #expect(throws: HTTP.Error.self) { try HTTP.Client().loadCookies(from: path) }
    }
    for path in [scratch("folder"), scratch("no/jar"), "", "/tmp/a\0b"] {
      #expect(throws: HTTP.Error.self) { try HTTP.Client().saveCookies(to: path) }
    }
  }

  @Test("a cookie that no server could set is rejected")
  func faults() {
    func isCookie(
      _ name: String, _ value: String = "", domain: String = "a.example", isHostOnly: Bool = true, port: Int? = nil,
      path: String = "/", isSecure: Bool = false
    ) -> Bool {
      (try? HTTP.Cookie(
        name: name, value: value, domain: domain, isHostOnly: isHostOnly, port: port, path: path, isSecure: isSecure))
        != nil
    }
    #expect(isCookie("a"))
    for name in ["", "a=b", "a;b", "a\nb", " a"] { #expect(!isCookie(name), "\(name)") }
    for value in ["a;b", "a\r\nb", "b ", "\u{7f}"] { #expect(!isCookie("a", value), "\(value)") }
    for domain in ["", "a/b", "a b", "u@a", "a:80", "[::1]"] { #expect(!isCookie("a", domain: domain), "\(domain)") }
    for path in ["", "a", "a;/", "/\n", "/\t"] { #expect(!isCookie("a", path: path), "\(path)") }
    for port in [0, -1, 65_536] { #expect(!isCookie("a", port: port)) }
    for domain in ["org", "1.2.3.4", "3.4", "3.0x4", "::1"] {
      #expect(!isCookie("a", domain: domain, isHostOnly: false), "\(domain)")
    }
    #expect(!isCookie("__Secure-a") && isCookie("__Secure-a", isSecure: true))
    #expect(!isCookie("__Host-a", path: "/x", isSecure: true))
    #expect(!isCookie("a", String(repeating: "x", count: 4096)))
  }

  @Test("a lifetime that no number holds is the longest, or is over")
  func lifetimes() throws {
    let address = try WebAddress("http://a.example/")
    let huge = String(repeating: "9", count: 30)
    func cookies(_ age: String) -> [HTTP.Cookie] {
      let jar = CookieJar()
      jar.take(["Set-Cookie": "a=1; Max-Age=\(age)"], from: address)
      return jar.all
    }
    #expect(cookies("-" + huge).isEmpty)
    #expect(cookies(huge).map(\.expires) == [.max])
    #expect(cookies("-" + huge + "x").map(\.expires) == [nil])
  }

  @Test(
    "a numeric address cannot set a cookie for other addresses with the same end", arguments: ["1", "0.1", "0.0.1"])
  func addresses(_ domain: String) throws {
    let jar = CookieJar()
    jar.take(["Set-Cookie": "a=1; Domain=\(domain)"], from: try WebAddress("http://127.0.0.1/"))
    #expect(jar.header(for: try WebAddress("http://10.0.0.1/")) == nil && jar.all.isEmpty)
    jar.take(["Set-Cookie": "a=1; Domain=127.0.0.1"], from: try WebAddress("http://127.0.0.1/"))
    #expect(jar.header(for: try WebAddress("http://127.0.0.1/")) == "a=1")
  }

  @Test("an expired cookie takes no place, is not listed, and does not keep its name from another")
  func expiry() throws {
    let jar = CookieJar()
    let (address, secure) = (try WebAddress("http://a.example/"), try WebAddress("https://a.example/"))
    jar.take(["Set-Cookie": "login=1"], from: address, now: 0)
    for number in 1..<CookieJar.domainLimit {
      jar.take(["Set-Cookie": "c\(number)=1; Max-Age=1"], from: address, now: 0)
    }
    #expect(jar.all.map(\.name) == ["login"])
    jar.take(["Set-Cookie": "new=1"], from: address, now: 1)
    #expect(jar.header(for: address, now: 1) == "login=1; new=1")
    jar.take(["Set-Cookie": "token=1; Secure; Max-Age=1"], from: secure, now: 1)
    jar.take(["Set-Cookie": "token=2"], from: address, now: 1)
    #expect(jar.header(for: secure, now: 1) == "login=1; new=1; token=1")
    jar.take(["Set-Cookie": "token=2"], from: address, now: 2)
    #expect(jar.header(for: address, now: 2) == "login=1; new=1; token=2")
  }

  @Test("a public suffix cannot set a cookie for all its hosts if libpsl is installed")
  func publicSuffixes() throws {
    let jar = CookieJar()
    jar.take(["Set-Cookie": "a=1; Domain=co.uk"], from: try WebAddress("http://shop.co.uk/"))
    #expect(jar.all.isEmpty == (HostName.isPublicSuffix("co.uk") == true))
    jar.removeAll()
    jar.take(["Set-Cookie": "a=1; Domain=shop.co.uk"], from: try WebAddress("http://www.shop.co.uk/"))
    #expect(jar.all.map(\.isHostOnly) == [false])
    jar.removeAll()
    // The host of that name may set one for itself.
    jar.take(["Set-Cookie": "a=1; Domain=github.io"], from: try WebAddress("http://github.io/"))
    #expect(jar.all.map(\.isHostOnly) == [HostName.isPublicSuffix("github.io") == true])
  }

  @Test("a trailing dot in a domain does not hide a public suffix", arguments: ["co.uk.", ".co.uk.", "evil.co.uk."])
  func trailingDots(_ domain: String) throws {
    let jar = CookieJar()
    jar.take(["Set-Cookie": "a=1; Domain=\(domain)"], from: try WebAddress("http://evil.co.uk./"))
    #expect(jar.all.isEmpty)
    #expect(HostName.isPublicSuffix("co.uk.") == HostName.isPublicSuffix("co.uk"))
    #expect(throws: HTTP.Error.self) {
      try HTTP.Cookie(name: "a", value: "1", domain: "co.uk.", isHostOnly: false)
    }
  }

  @Test("a host whose name cannot be shared sets cookies for itself only", arguments: ["127.0.0.1", "localhost"])
  func unsharedHosts(_ host: String) throws {
    let jar = CookieJar()
    jar.take(["Set-Cookie": "a=1; Domain=\(host)"], from: try WebAddress("http://\(host)/"))
    #expect(jar.all.map(\.isHostOnly) == [true])
  }

  @Test("a tab separates attributes, and cannot occur in a name, value or path")
  func tabs() throws {
    let address = try WebAddress("http://example.org/")
    for text in ["a\tb=c", "a=b\tc", "a=b; Path=/x\ty"] {
      #expect(HTTP.Cookie(text, from: address, now: 0) == nil, "\(text)")
    }
    #expect(HTTP.Cookie("\ta=b\t;\tPath=/x\t", from: address, now: 0)?.path == "/x")
  }

  @Test("every cookie that a server may set survives saving and loading")
  func acceptedIsLoadable() throws {
    let long = String(repeating: "x", count: 2000)
    let addresses = [
      "http://127.0.0.1:8080/a/b", "http://localhost/", "http://[::1]/", "http://github.io/", "http://co.uk./",
      "https://www.example.org/a;b/c", "http://www.example.org/\(long)/\(long)/x", "http://user.github.io/a b/c",
    ]
    let attributes = [
      "", "; Domain=127.0.0.1", "; Domain=localhost", "; Domain=::1", "; Domain=.github.io", "; Domain=example.org",
      "; Domain=co.uk.", "; Domain=org", "; Path=/x\ty", "; Path=/\(long)", "; Secure; Max-Age=100", "; Domain=.",
      "; Expires=Fri, 31 Dec 9999 23:59:59 GMT;\tPath=/ä",
    ]
    let pairs = [
      "a=b", "a=", "a b=c d", "a\tb=c", "a=b\tc", "\ta\t=\tb\t", "a=\(long)", "a==;", "é=\"ö\"", "__Host-a=b",
    ]
    var count = 0
    for address in try addresses.map({ try WebAddress($0) }) {
      for text in attributes.flatMap({ rest in pairs.map { $0 + rest } }) {
        let jar = CookieJar()
        jar.take(["Set-Cookie": text], from: address, now: 1000)
        let saved = CookieFile.text(of: jar.all)
        let loaded = try? CookieFile.cookies(in: saved)
        if loaded != jar.all { Issue.record("\(address.host) \(text.prefix(80).debugDescription)") }
        count += jar.all.count
      }
    }
    #expect(count > 100)
  }
}
