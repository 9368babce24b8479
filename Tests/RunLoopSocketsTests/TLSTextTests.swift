// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Texts of TLS values")
struct TLSTextTests {
  @Test("a pin is the Base64 text of 32 bytes, with or without curl's prefix")
  func pins() {
    let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    #expect(TLSPins.digest(text) == Array(0..<32))
    #expect(TLSPins.digest("sha256//" + text) == Array(0..<32))
    for bad in [
      "", "=", text + "=", String(text.dropLast()), "sha1//" + text, "-" + text.dropFirst(),
      "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",
    ] {
      #expect(TLSPins.digest(bad) == nil, "\(bad)")
      #expect(tlsFailure { _ = try TLSPins.digests([text, bad]) } == "badPin(\"\(bad)\")")
    }
  }

  @Test(
    "a server's name is a host name or an address",
    arguments: [
      ("localhost", "host(\"localhost\")"), ("A.b-c_d.example.", "host(\"A.b-c_d.example\")"),
      ("127.0.0.1", "address(\"127.0.0.1\")"), ("::1", "address(\"::1\")"),
      ("", "badServerName(\"\")"), ("a..b", "badServerName(\"a..b\")"), (".", "badServerName(\".\")"),
      ("a b", "badServerName(\"a b\")"), ("bücher.example", "badServerName(\"bücher.example\")"),
      ("*.example", "badServerName(\"*.example\")"), ("[::1]", "badServerName(\"[::1]\")"),
      ("a\0b", "badServerName(\"a\\0b\")"),
    ])
  func names(text: String, expected: String) {
    do {
      #expect("\(try TLSName(text, connectingTo: nil))" == expected)
    } catch {
      #expect("\(error.cause)" == expected)
    }
  }

  @Test("without a name, the address without its interface must be in the certificate")
  func address() throws {
    #expect(try TLSName(nil, connectingTo: SocketAddress("127.0.0.1:1")) == .address("127.0.0.1"))
    #expect(try TLSName(nil, connectingTo: SocketAddress("[fe80::1%1]:1")) == .address("fe80::1"))
    #expect(tlsFailure { _ = try TLSName(nil, connectingTo: SocketAddress("unix:/a")) } == "noServerName")
    #expect(tlsFailure { _ = try TLSName(nil, connectingTo: nil) } == "noServerName")
  }

  @Test("a name of an application protocol has 1 to 255 bytes")
  func protocols() throws {
    #expect(try TLSContext.protocolList(["h2", "x"]) == [2, 104, 50, 1, 120])
    for bad in ["", String(repeating: "x", count: 256)] {
      #expect(tlsFailure { _ = try TLSContext.protocolList([bad]) } == "badApplicationProtocol(\"\(bad)\")")
    }
  }

  @Test("a TLS error names the peer and the cause, and an identity shows no key")
  func descriptions() {
    let error = TLSError(.wrongHost(expected: "a.example"), peer: "a.example (127.0.0.1:443)")
    #expect(
      "\(SocketError.tls(error))" == "TLS with a.example (127.0.0.1:443): the certificate is not for \"a.example\"")
    #expect("\(TLSError(.rejectedByPeer(.unknownIssuer)))" == "TLS: the peer has ended the connection: unknown CA (48)")
    var identity = TLSIdentity(certificates: Array("c".utf8), key: Array("SECRET".utf8), password: "SESAME")
    var text = ""
    dump(TLSServerConfiguration(identity: identity), to: &text)
    text += "\(identity) \(String(reflecting: identity))"
    identity = TLSIdentity(certificateFile: "/c.pem", keyFile: "/SECRET", password: "SESAME")
    dump(identity, to: &text)
    text += "\(identity)"
    #expect(!text.contains("SESAME") && !text.contains("SECRET"), "\(text)")
  }

  @Test(
    "an OpenSSL that is missing, incomplete or too old is reported with the package to install",
    arguments: [
      ("libnothing.so.3", "libssl.so.3", 0, cos_missing), ("libcrypto.so.3", "libnothing.so.3", 0, cos_missing),
      ("libc.so.6", "libssl.so.3", 0, cos_symbol_missing), ("libcrypto.so.3", "libc.so.6", 0, cos_symbol_missing),
      ("libcrypto.so.3", "libssl.so.3", UInt.max, cos_too_old),
    ])
  func library(crypto: String, ssl: String, oldest: UInt, expected: Int) throws {
    var text = [CChar](repeating: 0, count: 300)
    #expect(Int(cos_try_open(crypto, ssl, oldest, &text, text.count)) == expected)
    let message = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    #expect(message.contains("libssl3, or libssl3t64"), "\(message)")
    #expect("\(TLSError(.libraryMissing(message)))".hasSuffix(message))
  }

  @Test("a process without TLS connections maps nothing of OpenSSL")
  func mapping() async {
    await #expect(processExitsWith: .success) {
      // Another part of the test program may have linked it.
      let wasMapped = try mapsOpenSSL()
      _ = onSocketLoop { loop, _ in
        let listener = try loop.listen { _, _ in }
        try loop.connect(listener.address) { _, event in if case .connected = event { loop.stop() } }
        loop.runUntilStopped()
      }
      #expect(cos_is_open() == 0)
      #expect(try mapsOpenSSL() == wasMapped)
      if TLSFiles.isAvailable { #expect(try mapsOpenSSL()) }
    }
  }
}

private func mapsOpenSSL() throws -> Bool {
  let maps = try TLSFile.read("/proc/self/maps")
  let text = String(decoding: maps, as: UTF8.self)
  return text.contains("libssl") || text.contains("libcrypto")
}
