// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopSockets

@Suite("Socket addresses")
struct SocketAddressTests {
  @Test(
    "an address parses its own description",
    arguments: [
      "127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:443", "[::]:0", "[fe80::1%1]:9", "[2001:db8::2]:1",
      "unix:/run/service", "unix:@name",
    ])
  func roundTrip(text: String) throws {
    let address = try SocketAddress(text)
    #expect(address.description == text)
    #expect(try SocketAddress(address.description) == address)
  }

  @Test("an address is printed in its shortest form")
  func canonical() throws {
    #expect(try SocketAddress("[0:0:0:0:0:0:0:1]:007").description == "[::1]:7")
    #expect(try SocketAddress(host: "fe80::1%lo", port: 9).host == "fe80::1%1")
  }

  @Test("an address has the components of its kind")
  func parts() throws {
    let ipv4 = SocketAddress.loopback(port: 8)
    #expect((ipv4.family, ipv4.host, ipv4.port, ipv4.path, ipv4.abstractName) == (.ipv4, "127.0.0.1", 8, nil, nil))
    let ipv6 = SocketAddress.any(port: 9, family: .ipv6)
    #expect((ipv6.family, ipv6.host, ipv6.port) == (.ipv6, "::", 9))
    let path = try SocketAddress(path: "/a")
    #expect((path.family, path.host, path.port, path.path, path.abstractName) == (.unix, nil, nil, "/a", nil))
    let name = try SocketAddress(abstractName: "a")
    #expect((name.family, name.path, name.abstractName) == (.unix, nil, "a"))
  }

  @Test(
    "a text that is not an address is rejected with an error that contains it",
    arguments: [
      ("", SocketAddressError.noPort("")), ("127.0.0.1", .noPort("127.0.0.1")), ("127.0.0.1:", .notAPort("")),
      ("127.0.0.1:65536", .notAPort("65536")), ("127.0.0.1:+1", .notAPort("+1")), ("127.0.0.1:-1", .notAPort("-1")),
      ("localhost:80", .notNumeric(host: "localhost")), ("127.0.0.256:80", .notNumeric(host: "127.0.0.256")),
      ("127.1:80", .notNumeric(host: "127.1")), ("::1:80", .noBrackets("::1:80")),
      ("[127.0.0.1]:80", .notNumeric(host: "[127.0.0.1]")), ("[::1]80", .notAPort("1]80")),
      ("[::1%nowhere0]:80", .unknownInterface("nowhere0")), ("127.0.0.1\0:80", .notNumeric(host: "127.0.0.1\0")),
      ("unix:", .notAPath("")), ("unix:@", .notAPath("")), ("unix:/a\0b", .notAPath("/a\0b")),
    ])
  func rejected(text: String, error: SocketAddressError) {
    #expect(throws: error) { try SocketAddress(text) }
  }

  @Test("a Unix path has room for 107 bytes")
  func limit() throws {
    let longest = String(repeating: "x", count: 107)
    #expect(try SocketAddress(path: longest).path == longest)
    #expect(try SocketAddress(abstractName: longest).abstractName == longest)
    #expect(throws: SocketAddressError.tooLong(longest + "x", limit: 107)) { try SocketAddress(path: longest + "x") }
    #expect(throws: SocketAddressError.tooLong(longest + "x", limit: 107)) {
      try SocketAddress(abstractName: longest + "x")
    }
  }
}
