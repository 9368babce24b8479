// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import Glibc
import RunLoopCore
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// How a loader distinguishes its connections.
@Suite struct ConnectionEndsTests {
  private static func name(_ last: UInt8, _ port: UInt16) -> sockaddr_in {
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = port.bigEndian
    name.sin_addr.s_addr = UInt32(0x7f00_0000 | UInt32(last)).bigEndian
    return name
  }

  /// Returns a socket bound to an address, either listening or connected to a peer.
  private static func socket(_ own: sockaddr_in, _ peer: sockaddr_in?) -> Int32? {
    func with(
      _ name: sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Bool {
      withUnsafePointer(to: name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
    }
    let number = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var yes: Int32 = 1
    setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
    guard with(own, { bind(number, $0, $1) }) else { return nil }
    if let peer { return with(peer) { connect(number, $0, $1) } ? number : nil }
    return listen(number, 5) == 0 ? number : nil
  }

  private static func port(_ number: Int32) -> UInt16 {
    var name = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafeMutablePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) } == 0
        ? UInt16(bigEndian: $0.pointee.sin_port) : 0
    }
  }

  @Test("two connections of the same ports are distinguished by their addresses")
  func samePorts() async throws {
    let answer = await elsewhere {
      guard let first = Self.socket(Self.name(1, 0), nil) else { return "no listener" }
      let port = Self.port(first)
      guard let second = Self.socket(Self.name(2, port), nil),
        let one = Self.socket(Self.name(1, 0), Self.name(1, port)),
        let other = Self.socket(Self.name(1, Self.port(one)), Self.name(2, port)),
        let ends = SocketWatch.Ends(of: one), let otherEnds = SocketWatch.Ends(of: other)
      else { return "no connections" }
      let loader = Loader(loop: .current, connectionsPerHost: 1)
      loader.noteOpened(one)
      loader.noteOpened(other)
      let found = [ends, otherEnds].map { loader.connection($0, opened: [one, other])?.source.descriptor }
      let said = SocketWatch.Ends(
        own: "127.0.0.1", Int32(Self.port(one)), peer: "127.0.0.2", Int32(port))
      // In the order in which the library reports them, repeatedly and alternately, and after one of them was closed.
      let ownPort = Int32(Self.port(one))
      func ask(_ peer: String) -> Int32? {
        "127.0.0.1".withCString { own in
          peer.withCString { peer in
            loader.connection(
              SocketWatch.Said(own: own, ownPort: ownPort, peer: peer, peerPort: Int32(port)),
              opened: [])?.source.descriptor
          }
        }
      }
      let peers = ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.1"]
      let asked = peers.map(ask) == [one, one, other, other, one]
      loader.close(one)
      let gone = [ask("127.0.0.1"), ask("127.0.0.2")] == [nil, other]
      loader.close()
      for number in [first, second, other] { close(number) }
      return "\(found == [one, other]) \(said == otherEnds) \(asked) \(gone)"
    }
    #expect(answer == "true true true true")
  }

  @Test("an idle socket is watched until unexpected bytes arrive")
  func resting() async throws {
    let answer = await elsewhere {
      var ends: [Int32] = [0, 0]
      guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { return "no sockets" }
      let loop = RunLoop.current
      let loader = Loader(loop: loop, connectionsPerHost: 1)
      loader.noteOpened(ends[0])
      var isPaused: String { loader.watches[ends[0]]?.source.isPaused == true ? "paused" : "waits" }
      func wants(_ what: Int) -> String {
        let failure = loader.watch(ends[0], Int32(what))
        return failure == nil ? isPaused : "an error"
      }
      var said = [isPaused, wants(Int(clc_poll_in)), wants(Int(clc_poll_remove)), wants(Int(clc_poll_in))]
      said.append(wants(Int(clc_poll_remove)))
      _ = write(ends[1], "x", 1)
      loop.run(mode: .default, for: .zero)
      said.append(isPaused)
      said += [wants(Int(clc_poll_in)), wants(Int(clc_poll_both)), wants(Int(clc_poll_remove))]
      // A socket that the library has created itself, and closes without notice.
      loader.close(ends[0])
      said.append(loader.watch(ends[1], Int32(clc_poll_in)) == nil ? "added" : "an error")
      _ = loader.watch(ends[1], Int32(clc_poll_remove))
      said.append(loader.watches[ends[1]]?.source.isPaused == true ? "paused" : "waits")
      loader.close()
      close(ends[1])
      return said.joined(separator: " ")
    }
    #expect(answer == "paused waits waits waits waits paused waits waits paused added paused")
  }

  @Test("libcurl and the system report the same IPv6 address")
  func sixth() {
    let read = SocketWatch.Ends(own: "::1", 1, peer: "fe80::1:2", 65535)
    #expect(read == SocketWatch.Ends(own: "0:0:0:0:0:0:0:1", 1, peer: "fe80:0:0::1:2", 65535))
    #expect(read != SocketWatch.Ends(own: "::1", 1, peer: "fe80::1:3", 65535))
    #expect(SocketWatch.Ends(own: "", 0, peer: "/path", 0) == nil)
    #expect(SocketWatch.Ends(own: nil, 1, peer: "::1", 1) == nil)
  }
}
