// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// SOCKS proxies, and the choice of a request's proxy.
@Suite(.timeLimit(.minutes(20))) struct SocksTests {
  @Test(
    "each SOCKS version resolves host names locally or at the proxy, as specified",
    arguments: [
      ("socks5h", "http://no.such.host.invalid/", "200 5 name no.such.host.invalid:80"),
      ("socks4a", "http://no.such.host.invalid:81/", "200 4 name no.such.host.invalid:81"),
      ("socks5", "http://localhost:82/", "200 5 number 127.0.0.1:82"),
      ("socks4", "http://localhost:83/", "200 4 number 127.0.0.1:83"),
      ("socks5", "http://192.0.2.1/", "200 5 number 192.0.2.1:80"),
      ("socks5", "http://no.such.host.invalid/", "cannotFindHost"),
      ("SOCKS5H", "http://no.such.host.invalid/", "200 5 name no.such.host.invalid:80"),
    ])
  func kinds(_ scheme: String, _ url: String, _ expected: String) async throws {
    let proxy = try SocksServer()
    try await withClient {
      $0.proxy = .url("\(scheme)://127.0.0.1:\(proxy.port)")
    } _: { client in
      // The name may resolve to an address of either family.
      let found = await end(client, HTTP.Request(url))
      #expect(found == expected || found.hasPrefix("200 5 number 0.0.0.0.0") && url.contains("localhost"))
      // The connection is kept.
      guard found.hasPrefix("200") else { return }
      #expect(await end(client, HTTP.Request(url)) == found)
      #expect(proxy.asked.value.count == 1)
    }
  }

  @Test("credentials for SOCKS 5 are sent, and wrong ones are the proxy's error", arguments: ["right", "wrong"])
  func credentials(_ password: String) async throws {
    let proxy = try SocksServer(password: "right")
    try await withClient {
      $0.proxy = .url("socks5h://user:\(password)@127.0.0.1:\(proxy.port)")
    } _: { client in
      let expected = password == "right" ? "200 5 name a.invalid:80" : "proxyFailed"
      #expect(await end(client, HTTP.Request("http://a.invalid/")) == expected)
    }
  }

  @Test("a SOCKS proxy that is unreachable or rejects is the proxy's error", arguments: ["socks5h", "socks4a"])
  func rejections(_ scheme: String) async throws {
    let proxy = try SocksServer(rejects: true)
    let gone = try SocksServer()
    gone.stop()
    for port in [proxy.port, gone.port] {
      try await withClient {
        $0.proxy = .url("\(scheme)://127.0.0.1:\(port)")
      } _: { client in
        #expect(await end(client, HTTP.Request("http://a.invalid/")) == "proxyFailed")
        #expect(await end(client, HTTP.Request("https://a.invalid/")) == "proxyFailed")
      }
    }
  }

  @Test("credentials for a SOCKS proxy are not sent to the host behind it")
  func proxyCredential() async throws {
    let proxy = try SocksServer()
    try await withClient {
      $0.proxy = .url("socks5h://127.0.0.1:\(proxy.port)")
    } _: { client in
      let headers: HTTP.Headers = ["proxy-authorization": "Bearer secret", "X-Other": "sent"]
      #expect(await end(client, HTTP.Request("http://a.invalid/", headers: headers)) == "200 5 name a.invalid:80")
    }
    let head = proxy.heads.value.joined().lowercased()
    #expect(head.contains("x-other: sent"))
    #expect(!head.contains("proxy-authorization"))
  }

  @Test("a failure after the connection to a SOCKS proxy is the host's, unless libcurl reports otherwise")
  func blame() throws {
    let socks = try ProxyAddress("socks5://proxy.example")
    #expect(socks.hasFailed(.proxyFailed, requests: 0, hasConnected: true))
    #expect(socks.hasFailed(.cannotConnect, requests: 0, hasConnected: false))
    #expect(socks.hasFailed(.connectionLost, requests: 0, hasConnected: false))
    #expect(!socks.hasFailed(.connectionLost, requests: 0, hasConnected: true))
    #expect(!socks.hasFailed(.connectionLost, requests: 1, hasConnected: true))
    #expect(!socks.hasFailed(.tlsFailed, requests: 0, hasConnected: true))
    let web = try ProxyAddress("http://proxy.example")
    #expect(web.hasFailed(.proxyFailed, requests: 0, hasConnected: true))
    #expect(!web.hasFailed(.cannotConnect, requests: 0, hasConnected: false))
  }

  @Test(
    "a host's address that a proxy cannot reach is looked up again by the next request",
    arguments: ["socks4", "socks5"])
  func forgetting(_ scheme: String) async throws {
    let proxy = try SocksServer(rejects: true)
    let elsewhere = try SocketAddress(host: "127.0.0.2", port: 84)
    try await withClient {
      $0.proxy = .url("\(scheme)://127.0.0.1:\(proxy.port)")
    } _: { client in
      let core = client.core
      core.post { core.names.note("localhost", 84, [elsewhere], now: core.now) }
      for _ in 0..<2 { #expect(await end(client, HTTP.Request("http://localhost:84/")) == "proxyFailed") }
    }
    let asked = proxy.asked.value
    #expect(asked.first?.hasSuffix("number 127.0.0.2:84") == true)
    // An address other than the cached one, of either family.
    #expect(asked.last != asked.first)
  }

  @Test("a 407 from a host behind SOCKS is its response")
  func responses() async throws {
    let server = try LyingServer { $0.answer("who", status: "407 Who", "Proxy-Authenticate: Basic realm=\"r\"") }
    let proxy = try SocksServer()
    try await withClient { client in
      var request = HTTP.Request("http://a.invalid/")
      request.proxy = .url("socks5h://127.0.0.1:\(proxy.port)")
      #expect(await end(client, request) == "200 5 name a.invalid:80")
      // The next request has no proxy.
      #expect(await end(client, HTTP.Request(server.url())) == "407 who")
    }
  }

  @Test("a request's own proxy replaces the client's, and so does having none")
  func ownProxies() async throws {
    let server = try LyingServer { $0.answer("direct") }
    let (first, second) = (try SocksServer(), try SocksServer())
    try await withClient {
      $0.proxy = .url("socks5h://127.0.0.1:\(first.port)")
    } _: { client in
      var request = HTTP.Request(server.url())
      let asked = "200 5 number 127.0.0.1:"
      #expect(await end(client, request).hasPrefix(asked))
      request.proxy = .url("socks5h://127.0.0.1:\(second.port)")
      #expect(await end(client, request).hasPrefix(asked))
      #expect(second.asked.value.count == 1)
      request.proxy = HTTP.Proxy.none
      #expect(await end(client, request) == "200 direct")
      request.proxy = .url("gopher://127.0.0.1:1")
      #expect(await end(client, request) == "proxyFailed")
    }
    #expect(first.asked.value.count == 1)
  }

  @Test(
    "a proxy's error names the environment variable that it comes from",
    arguments: [
      ("ALL_PROXY", "gopher://a", "gopher"), ("http_proxy", "http://a:b", "http_proxy"),
      ("all_proxy", "socks9://u:secret@a", "socks9"), ("http_proxy", "http://u%00:secret@a", "http_proxy"),
    ])
  func variables(_ name: String, _ value: String, _ words: String) throws {
    let choice = ProxyChoice(.environment) { $0 == name ? value : nil }
    #expect {
      try choice.proxy(for: WebAddress("http://example.org/"))
    } throws: { error in
      guard let error = error as? HTTP.Error, error.code == .proxyFailed else { return false }
      return error.detail.contains(name) && error.detail.contains(words) && !error.detail.contains("secret")
    }
  }

  @Test(
    "the URL of a proxy is parsed",
    arguments: [
      ("proxy.example", "http://proxy.example:80"), ("https://proxy.example", "https://proxy.example:443"),
      ("socks5://proxy.example", "socks5://proxy.example:1080"), ("socks://[::1]:9", "socks4://[::1]:9"),
      ("socks4a://u:p@Proxy.Example:9/", "socks4a://proxy.example:9"),
    ])
  func addresses(_ text: String, _ expected: String) throws { #expect(try ProxyAddress(text).text == expected) }
}
