// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopHTTP

/// URLs of requests and redirects.
@Suite struct WebAddressTests {
  @Test(
    "a URL is normalized to the form in which it is sent",
    arguments: [
      ("http://Example.ORG", "http://example.org/"), ("https://example.org:443/a?b#c", "https://example.org/a?b"),
      ("http://example.org:8080/a/./b/../c", "http://example.org:8080/a/c"),
      ("http://[::1]:80/x", "http://[::1]/x"), ("http://user:pass@example.org/", "http://example.org/"),
      ("http://example.org/a b\"ü", "http://example.org/a%20b%22%C3%BC"),
      ("http://bücher.example", "http://xn--bcher-kva.example/"),
      ("http://example.org?x", "http://example.org/?x"), ("http://a.b/..", "http://a.b/"),
      ("http://a.b/c/..", "http://a.b/"),
    ])
  func reading(_ text: String, _ expected: String) throws {
    #expect(try WebAddress(text).requestText == expected)
  }

  @Test(
    "a text that is not an http or https URL is rejected",
    arguments: [
      "", "nonsense", "http://", "http:///path", "ftp://example.org/", "http://a b/", "http://a:99999/", "http://a:0/",
      "http://a:1x/", "http://[::1/", "http://[1.2.3.4]/", "http://a%41/", "http://a\u{0}b/", "http://a/\r\nb", "//a/b",
    ])
  func rejecting(_ text: String) { #expect(throws: WebAddress.Failure.self) { try WebAddress(text) } }

  @Test(
    "a relative reference is resolved as in RFC 3986's examples",
    arguments: [
      ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
      ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
      (";x", "http://a/b/c/;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
      ("..", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../../g", "http://a/g"),
      ("/./g", "http://a/g"), ("g.", "http://a/b/c/g."), ("./g/.", "http://a/b/c/g/"), ("g/../h", "http://a/b/c/h"),
      ("https://x/y", "https://x/y"),
    ])
  func references(_ reference: String, _ expected: String) throws {
    #expect(try WebAddress("http://a/b/c/d;p?q").following(reference).requestText == expected)
  }

  @Test("a redirect to another scheme or without a target is rejected")
  func badReferences() throws {
    let base = try WebAddress("http://a/")
    #expect(throws: WebAddress.Failure.scheme("file")) { try base.following("file:///etc/passwd") }
    #expect(throws: WebAddress.Failure.self) { try base.following("http:") }
    #expect(throws: WebAddress.Failure.self) { try base.following("http://a:b/") }
  }

  @Test("the text for errors has no user, password, query or fragment, whatever the input")
  func safeText() throws {
    #expect(try WebAddress("http://u:p@a/b?secret#f").safeText == "http://a/b")
    #expect(WebAddress.safeText(of: "ftp://u:p@a/b?secret#f") == "ftp://a/b")
    #expect(WebAddress.safeText(of: "u:p@a?q") == "a")
    // A password without percent-encoding: its end is ambiguous.
    #expect(WebAddress.safeText(of: "http://user:pa#ss@host/path") == "http://…")
    #expect(WebAddress.safeText(of: "http://user:pa?ss@host/path") == "http://…")
    #expect(WebAddress.safeText(of: "http://host:99999/path?mail=a@b") == "http://…")
    #expect(WebAddress.safeText(of: "http://host/path?mail=a@b") == "http://host/path")
  }

  @Test(
    "international names are mapped as UTS 46 specifies, or rejected without libidn2",
    arguments: [
      ("bücher.example", "xn--bcher-kva.example"), ("bu\u{308}cher.example", "xn--bcher-kva.example"),
      ("ＥＸＡＭＰＬＥ.com", "example.com"), ("例え。テスト", "xn--r8jz45g.xn--zckzah"), ("ex\u{ad}ample.com", "example.com"),
      ("BÜCHER.Example", "xn--bcher-kva.example"), ("faß.de", "xn--fa-hia.de"),
      ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"), ("Königsgäßchen", "xn--knigsgchen-b4a3dun"),
      // Symbols, which only the older mapping has.
      ("☃.net", "xn--n3h.net"), ("i❤.ws", "xn--i-7iq.ws"), ("😀.example", "xn--e28h.example"),
    ])
  func mapping(_ host: String, _ expected: String) throws {
    var isThere = true
    do throws(HostName.Failure) { _ = try HostName.ascii("bücher") } catch { isThere = false }
    guard isThere else {
      #expect(throws: WebAddress.Failure.self) { try WebAddress("http://\(host)/") }
      return
    }
    #expect(try WebAddress("http://\(host)/").host == expected)
  }

  @Test(
    "host names that cannot be mapped are rejected",
    arguments: [
      "a\u{ff0f}b.example", "a\u{2048}b", "\u{ad}", "a\u{d7ff}b", "xn--ü", "\u{e000}", "☃ß.net", "☃\u{200d}.net",
    ])
  func unmapped(_ host: String) { #expect(throws: WebAddress.Failure.self) { try WebAddress("http://\(host)/") } }
}
