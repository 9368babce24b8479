// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("TLS connections in memory", .enabled(if: TLSFiles.isAvailable), .timeLimit(.minutes(20)))
struct TLSSessionTests {
  @Test(
    "bytes pass in both directions and both ends end, however the bytes are divided",
    arguments: [TLSVersion.tls12, .tls13], [1, 2, 5, 63, 1000, 64 * 1024])
  func chunks(version: TLSVersion, chunk: Int) throws {
    let server = try TLSContext.server { $0.maximumVersion = version }
    for room in [1, 100, 64 * 1024] {
      let ends = try TLSEnds(.client(), server)
      ends.chunk = chunk
      ends.room = room
      ends.run()
      #expect(ends.outcome == "open open")
      let text = (0..<17_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }
      ends.write(text, from: ends.client)
      ends.write(text.reversed(), from: ends.server)
      ends.client.endWriting()
      ends.run()
      #expect(ends.outcome == "open ended")
      // The other direction continues.
      ends.write([1, 2, 3], from: ends.server)
      ends.server.endWriting()
      ends.run()
      #expect(ends.outcome == "ended ended")
      #expect(ends.serverGot == text && ends.clientGot == text.reversed() + [1, 2, 3])
      let info = try #require(ends.client.info)
      #expect(info.version == version && info.serverName == "localhost" && !info.isResumed)
      #expect(info.cipherSuite == ends.server.info?.cipherSuite && !info.cipherSuite.isEmpty)
      #expect(info.peerCertificate?.first == 0x30 && ends.server.info?.peerCertificate == nil)
    }
  }

  @Test("the bytes written before the other end reads are limited")
  func bounded() throws {
    let ends = try TLSEnds(.client(), .server())
    ends.run()
    let taken = [UInt8](repeating: 1, count: 10 << 20).withUnsafeBytes { ends.client.write($0) }
    #expect(taken == TLSSession.outputLimit && ends.client.outputCount < TLSSession.outputLimit * 2)
  }

  @Test(
    "every kind of bad certificate is rejected with its cause, which the server receives",
    arguments: [
      ("server", "open open"), ("rsa", "open open"), ("chain", "open open"), ("expired", "expired alert45"),
      ("future", "notYetValid alert42"), ("elsewhere", "wrongHost(expected: \"localhost\") alert42"),
      ("onlycommon", "wrongHost(expected: \"localhost\") alert42"), ("unknown", "unknownIssuer alert48"),
      ("self", "selfSigned alert48"), ("usage", "wrongPurpose alert43"), ("below", "unknownIssuer alert48"),
    ])
  func certificates(name: String, expected: String) throws {
    for version in [TLSVersion.tls12, .tls13] {
      let ends = try TLSEnds(.client(), .server(name) { $0.maximumVersion = version })
      ends.run()
      #expect(ends.outcome == expected)
    }
  }

  @Test("a key that is too weak is rejected before it is used")
  func weak() { #expect(tlsFailure { _ = try TLSContext.server("weak") } == "badCertificate") }

  @Test(
    "a certificate's name is matched with one label for a wildcard, addresses as such, never the common name",
    arguments: [
      ("server", "a.example", true), ("server", "A.EXAMPLE.", true), ("server", "b.wild.example", true),
      ("server", "c.b.wild.example", false), ("server", "wild.example", false), ("server", "127.0.0.1", true),
      ("server", "::1", true), ("server", "0:0:0:0:0:0:0:1", true), ("server", "127.0.0.2", false),
      ("elsewhere", "127.0.0.1", false), ("onlycommon", "onlycommon", false), ("wide", "a.example.org", false),
      ("wide", "wa.example.org", false), ("wide", "localhost", false),
    ])
  func names(certificate: String, name: String, isRight: Bool) throws {
    let ends = try TLSEnds(.client(), .server(certificate), name: name)
    ends.run()
    let host = try TLSName(name, connectingTo: nil).text
    #expect(ends.outcome == (isRight ? "open open" : "wrongHost(expected: \"\(host)\") alert42"))
  }

  @Test("the checks of a certificate can be disabled one by one")
  func verification() throws {
    let cases: [(TLSConfiguration.Verification, String, String)] = [
      (.withoutName, "elsewhere", "open open"), (.withoutName, "expired", "expired alert45"),
      (.withoutName, "self", "selfSigned alert48"), (.pinsOnly, "self", "open open"),
      (.pinsOnly, "expired", "open open"),
    ]
    for (verification, certificate, expected) in cases {
      for name in ["localhost", nil] {
        let ends = try TLSEnds(.client { $0.verification = verification }, .server(certificate), name: name)
        ends.run()
        #expect(ends.outcome == expected, "\(verification) \(certificate)")
      }
    }
  }

  @Test("a pin is the key of any certificate of a verified chain, or the server's own")
  func pins() throws {
    let (own, root, other) = (TLSFiles.pin("server"), TLSFiles.pin("ca"), TLSFiles.pin("self"))
    let cases: [(TLSConfiguration.Verification, [String], String, String)] = [
      (.full, [own], "server", "open open"), (.full, ["sha256//" + root], "server", "open open"),
      (.full, [other, own], "server", "open open"), (.full, [other], "server", "pinMismatch alert40"),
      (.full, [own], "expired", "expired alert45"), (.pinsOnly, [other], "self", "open open"),
      (.pinsOnly, [own], "server", "open open"), (.pinsOnly, [root], "server", "pinMismatch alert40"),
      (.pinsOnly, [own], "self", "pinMismatch alert40"),
    ]
    for (verification, pins, certificate, expected) in cases {
      let client = try TLSContext.client {
        $0.verification = verification
        $0.pins = pins
      }
      let ends = try TLSEnds(client, .server(certificate))
      ends.run()
      #expect(ends.outcome == expected, "\(verification) \(pins) \(certificate)")
    }
  }

  @Test("the end of the stream is a truncation unless the peer has sent close_notify")
  func truncation() throws {
    let early = try TLSEnds(.client(), .server())
    early.client.transportEnded()
    #expect(early.outcome == "closedDuringHandshake handshaking")
    let ends = try TLSEnds(.client(), .server())
    ends.run()
    ends.write([1], from: ends.client)
    ends.server.transportEnded()
    #expect(ends.outcome == "open truncated")
    ends.server.endWriting()
    #expect(!ends.server.hasOutput)
    let ended = try TLSEnds(.client(), .server())
    ended.run()
    ended.client.endWriting()
    ended.run()
    ended.server.transportEnded()
    #expect(ended.outcome == "open ended")
  }

  @Test("half a record contains no bytes, and its end is a truncation")
  func half() throws {
    let ends = try TLSEnds(.client(), .server())
    ends.run()
    _ = [UInt8](repeating: 5, count: 1000).withUnsafeBytes { ends.client.write($0) }
    let record = ends.client.withOutput { Array($0) }
    #expect(ends.give(Array(record.dropLast()), to: ends.server) == [])
    #expect(ends.outcome == "open open")
    ends.server.transportEnded()
    #expect(ends.outcome == "open truncated")
  }

  @Test("a record that was modified in transit is rejected, and the peer is notified")
  func tampering() throws {
    let ends = try TLSEnds(.client(), .server())
    ends.run()
    ends.change = { $0.isEmpty ? $0 : Array($0.dropLast()) + [$0[$0.count - 1] ^ 1] }
    ends.write([1, 2, 3], from: ends.client)
    #expect(ends.outcome == "alert20 violation" && ends.serverGot == [])
  }

  @Test(
    "bytes that are not TLS are reported as such",
    arguments: ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "EHLO example.org\r\n"])
  func otherProtocols(text: String) throws {
    let ends = try TLSEnds(.client(), .server())
    _ = ends.give(Array(text.utf8), to: ends.server)
    _ = ends.give(Array(text.utf8), to: ends.client)
    #expect(ends.outcome == "notTLS notTLS")
  }

  @Test("the version is the highest that both ends support")
  func versions() throws {
    let cases: [(TLSVersion, TLSVersion, TLSVersion, TLSVersion, String)] = [
      (.tls12, .tls13, .tls12, .tls12, "open open"), (.tls12, .tls12, .tls12, .tls13, "open open"),
      (.tls13, .tls13, .tls12, .tls12, "alert70 versionMismatch"),
      (.tls12, .tls12, .tls13, .tls13, "alert70 versionMismatch"),
    ]
    for (oldest, newest, serverOldest, serverNewest, expected) in cases {
      let client = try TLSContext.client { ($0.minimumVersion, $0.maximumVersion) = (oldest, newest) }
      let server = try TLSContext.server { ($0.minimumVersion, $0.maximumVersion) = (serverOldest, serverNewest) }
      let ends = try TLSEnds(client, server)
      ends.run()
      #expect(ends.outcome == expected)
    }
    #expect(
      tlsFailure {
        _ = try TLSContext.client {
          $0.minimumVersion = .tls13; $0.maximumVersion = .tls12
        }
      } == "noVersion")
  }

  @Test("the server chooses the application protocol, or rejects a client without a common one")
  func applicationProtocols() throws {
    let cases: [([String], [String], String, String?)] = [
      (["h2", "http/1.1"], ["http/1.1", "h2"], "open open", "http/1.1"), (["h2"], ["h2"], "open open", "h2"),
      (["h2"], [], "open open", nil), ([], ["h2"], "open open", nil),
      (["h", "h22"], ["h2"], "alert120 noCommonApplicationProtocol", nil),
    ]
    for (offered, spoken, expected, chosen) in cases {
      let ends = try TLSEnds(
        .client { $0.applicationProtocols = offered }, .server { $0.applicationProtocols = spoken })
      ends.run()
      #expect(ends.outcome == expected)
      guard expected == "open open" else { continue }
      #expect(ends.client.info?.applicationProtocol == chosen && ends.server.info?.applicationProtocol == chosen)
    }
  }

  @Test("a server presents the certificate of the requested name")
  func serverNames() throws {
    let server = try TLSContext.server("rsa") {
      $0.identities = ["b.example": TLSFiles.identity("second"), "*.b.example": TLSFiles.identity("second")]
    }
    for (name, expected) in [
      ("localhost", "open open"), ("b.example", "open open"), ("B.Example", "open open"), ("x.b.example", "open open"),
      ("127.0.0.1", "open open"), ("x.y.b.example", "wrongHost(expected: \"x.y.b.example\") alert42"),
    ] {
      let ends = try TLSEnds(.client(), server, name: name)
      ends.run()
      #expect(ends.outcome == expected, "\(name)")
      guard expected == "open open" else { continue }
      #expect(ends.server.info?.serverName == (name == "127.0.0.1" ? nil : name))
    }
    let strict = try TLSContext.server {
      $0.identities = ["b.example": TLSFiles.identity("second")]
      $0.rejectsUnknownNames = true
    }
    for (name, expected) in [
      ("b.example", "open open"), ("localhost", "alert112 unknownServerName(Optional(\"localhost\"))"),
      ("127.0.0.1", "alert112 unknownServerName(nil)"),
    ] {
      let ends = try TLSEnds(.client(), strict, name: name)
      ends.run()
      #expect(ends.outcome == expected, "\(name)")
    }
  }

  @Test("clients present certificates as the server requires")
  func clientCertificates() throws {
    typealias Case = (TLSServerConfiguration.ClientVerification, String?, String, String)
    // A TLS 1.3 client has finished before the server has checked its certificate.
    let cases: [Case] = [
      (.none, "client", "open open", "none"), (.optional, nil, "open open", "none"),
      (.optional, "client", "open open", "shown"), (.required, "client", "open open", "shown"),
      (.required, nil, "alert116 noCertificate", "none"), (.required, "server", "open open", "shown"),
      (.required, "expired", "alert45 expired", "none"), (.optional, "unknown", "alert48 unknownIssuer", "none"),
      (.required, "self", "alert48 selfSigned", "none"),
    ]
    for (verification, certificate, expected, shown) in cases {
      let client = try TLSContext.client { $0.identity = certificate.map(TLSFiles.identity) }
      let server = try TLSContext.server {
        $0.clientVerification = verification
        $0.clientRoots = [.pem(TLSFiles.text("ca.pem"))]
      }
      let ends = try TLSEnds(client, server)
      ends.run()
      #expect(ends.outcome == expected, "\(verification) \(certificate ?? "none")")
      guard expected == "open open" else { continue }
      #expect((ends.server.info?.peerCertificate == nil) == (shown == "none"))
    }
  }

  @Test("a connection to the same named server is resumed, each ticket once", arguments: [TLSVersion.tls12, .tls13])
  func resumption(version: TLSVersion) throws {
    let client = try TLSContext.client()
    let server = try TLSContext.server { $0.maximumVersion = version }
    func connect(_ client: TLSContext, _ name: String) throws -> Bool {
      let ends = try TLSEnds(client, server, name: name)
      ends.run()
      #expect(ends.outcome == "open open")
      #expect(ends.client.info?.isResumed == ends.server.info?.isResumed)
      return ends.client.info?.isResumed == true
    }
    #expect(try !connect(client, "localhost"))
    let kept = try #require(client.tickets).count
    #expect(kept == (version == .tls13 ? 2 : 1))
    #expect(try !connect(client, "a.example"))
    #expect(try connect(client, "localhost"))
    #expect(try !connect(.client { $0.resumesSessions = false }, "localhost"))
    // A server without keys for the ticket makes a full handshake.
    let other = try TLSContext.server { $0.maximumVersion = version }
    let ends = try TLSEnds(client, other, name: "localhost")
    ends.run()
    #expect(ends.outcome == "open open" && ends.client.info?.isResumed == false)
    let none = try TLSContext.server { ($0.maximumVersion, $0.resumesSessions) = (version, false) }
    let fresh = try TLSContext.client()
    let last = try TLSEnds(fresh, none)
    last.run()
    #expect(last.outcome == "open open" && fresh.tickets?.count == 0)
  }

  @Test("the number of tickets is limited, for each server and in total")
  func tickets() throws {
    let client = try TLSContext.client()
    let server = try TLSContext.server("server") { $0.rejectsUnknownNames = false }
    for index in 0..<TLSTickets.serverLimit + 10 {
      for _ in 0..<(index == 0 ? 4 : 1) {
        let ends = try TLSEnds(client, server, name: "h\(index).wild.example")
        ends.run()
        #expect(ends.outcome == "open open")
      }
    }
    let count = try #require(client.tickets).count
    #expect(count == TLSTickets.serverLimit * 2)
  }

  @Test("errors in files, certificates and keys are reported, and no password is requested on a terminal")
  func files() throws {
    func failure(_ identity: TLSIdentity) -> String {
      tlsFailure { _ = try TLSContext(TLSServerConfiguration(identity: identity)) }
    }
    let (certificate, key) = (TLSFiles.path("server.pem"), TLSFiles.path("server.key"))
    func identity(_ certificate: String, _ key: String, _ password: String? = nil) -> TLSIdentity {
      TLSIdentity(certificateFile: certificate, keyFile: key, password: password)
    }
    #expect(failure(identity(certificate, key)) == "nothing")
    #expect(
      failure(identity("/nothing", key))
        == "\(TLSError.Cause.file(path: "/nothing", SystemError(call: "open", number: ENOENT)))")
    #expect(failure(identity(certificate, "/tmp")).contains("\(EISDIR)"))
    #expect(failure(identity(key, key)) == "badCertificate")
    #expect(failure(identity(certificate, certificate)) == "badKey")
    #expect(failure(identity(certificate, TLSFiles.path("client.key"))) == "keyMismatch")
    let locked = TLSFiles.path("locked.key")
    #expect(failure(identity(certificate, locked, "sesame")) == "nothing")
    #expect(failure(identity(certificate, locked)) == "badKey")
    #expect(failure(identity(certificate, locked, "open")) == "badKey")
    #expect(failure(identity(certificate, locked, String(repeating: "x", count: 5000))) == "badKey")
    #expect(
      failure(TLSIdentity(certificates: TLSFiles.text("server.pem"), key: TLSFiles.text("server.key"))) == "nothing")
    #expect(failure(TLSIdentity(certificates: [], key: [])) == "badCertificate")
    for roots in [
      TLSRoots.pem([]), .pem(Array("nothing".utf8)), .file(key), .pem(TLSFiles.text("ca.pem").dropLast(60)),
    ] {
      #expect(tlsFailure { _ = try TLSContext.client { $0.roots = [roots] } } == "badCertificate")
    }
    #expect(tlsFailure { _ = try TLSContext.client { $0.pins = ["x"] } } == "badPin(\"x\")")
    #expect(
      tlsFailure { _ = try TLSContext.server { $0.identities = ["a b": TLSFiles.identity("server")] } }
        == "badServerName(\"a b\")")
    #expect(tlsFailure { _ = try TLSContext.client { $0.roots = [.system] } } == "nothing")
  }

  @Test("whatever bytes arrive in any state, an end responds, fails or waits, and a failure is final")
  func garbage() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    var random = SplitMix64(seed: 7)
    for round in 0..<300 {
      let ends = try TLSEnds(client, server)
      var left = Int(random.next() % 3)
      ends.change = { bytes in
        guard !bytes.isEmpty else { return bytes }
        guard left == 0 else {
          left -= 1
          return bytes
        }
        var changed = bytes
        for _ in 0...(random.next() % 4) {
          changed[Int(random.next() % UInt64(changed.count))] = UInt8(truncatingIfNeeded: random.next())
        }
        return random.next() % 4 == 0 ? Array(changed.prefix(Int(random.next() % UInt64(changed.count)))) : changed
      }
      ends.chunk = round % 2 == 0 ? 64 * 1024 : 100
      ends.run()
      ends.write([1, 2, 3], from: ends.client)
      if ends.server.state.failure != nil {
        let before = ends.server.state
        #expect(ends.give([22, 3, 3, 0, 1, 0], to: ends.server) == [] && ends.server.state == before)
      }
    }
  }
}
