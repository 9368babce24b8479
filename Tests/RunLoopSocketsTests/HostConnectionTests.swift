// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Testing
import TestSupport

@testable import RunLoopSockets

/// A host with scripted addresses, on a loop with virtual time.
///
/// Each address is a Unix socket that accepts, does not respond, or rejects.
private final class ScriptedHost: @unchecked Sendable {
  // Sendable: used by the loop's thread only; the lists are boxes.

  let open: ListeningSocket
  /// A listener whose queue is full, so that connecting to it waits.
  let full: ListeningSocket
  private let filling: [Socket]
  private let nobody: SocketAddress
  let begun = Box<[String]>([])
  let made = Box<[Socket]>([])
  private let start: SuspendingClock.Instant
  private let loop: RunLoop

  init(_ loop: RunLoop) throws {
    self.loop = loop
    start = loop.now
    open = try ListeningSocket(at: SocketAddress(abstractName: socketPath()))
    var options = ListeningSocket.Options()
    options.backlog = 0
    full = try ListeningSocket(at: SocketAddress(abstractName: socketPath()), options: options)
    filling = try [Socket(connectingTo: full.address), Socket(connectingTo: full.address)]
    nobody = try SocketAddress(abstractName: socketPath())
    guard filling[1].withDescriptor({ _ in }) != nil, filling[1].awaitedAddress != nil else {
      preconditionFailure("a queue of nothing has room for two")
    }
  }

  /// Accepts a connection, so that a waiting one can connect.
  func makeRoom() throws { _ = try full.accept(atMost: 1) }

  var seconds: String { "\(Int((loop.now - start) / .milliseconds(1)))" }

  /// Scripts the system calls: port 1 accepts, 2 does not respond, 3 rejects.
  func system(_ answer: HostResolver.Answer, lookupTakes time: Duration = .zero) -> HostConnector.System {
    HostConnector.System(
      resolve: { [self] request, body in
        let lookup = HostLookup(request.query) { _, answer in body(answer) }
        loop.schedule(in: time) { _ in if lookup.claim() { lookup.finish(answer) } }
        return lookup
      },
      connect: { [self] address, options, handler in
        begun.value.append("\(address)@\(seconds)")
        let target = [open.address, full.address, nobody][Int(address.port ?? 1) - 1]
        return Result { () throws(SocketError) in
          let socket = try Socket(connectingTo: target, options: options, handler: handler)
          made.value.append(socket)
          return socket
        }
      })
  }

  /// Connects, and logs each attempt with its time, and the outcome.
  func connect(
    _ addresses: [String], timeout: Duration? = nil, delay: Duration = .milliseconds(250),
    options: Socket.Options = .init(), _ log: Log
  ) throws -> HostConnection {
    let answer = HostResolver.Answer.success(try addresses.map { try SocketAddress($0) })
    return HostConnector.start(request(timeout, delay, options), system: system(answer)) { [self] result in
      log.write("[\(begun.value.joined(separator: " "))]")
      switch result {
      case .success(let socket):
        let isAlone = made.value.filter(\.isValid) == [socket]
        log.write(
          "\(socket.isConnected) \(socket.handler == nil) \(loop.contains(socket, forMode: .default)) \(isAlone)")
      case .failure(let error): log.write("\(error) \(made.value.count(where: \.isValid))")
      }
      log.write("@\(seconds)")
    }
  }

  func request(
    _ timeout: Duration?, _ delay: Duration = .milliseconds(250), _ options: Socket.Options = .init()
  ) -> HostConnector.Request {
    HostConnector.Request(
      query: HostResolver.Query(host: "h", port: 1, family: nil), options: options, attemptDelay: delay,
      timeout: timeout, loop: loop, modes: [.default])
  }
}

extension ListeningSocket {
  /// Accepts waiting connections without a loop.
  fileprivate func accept(atMost count: Int) throws -> [OwnedDescriptor] {
    var accepted: [OwnedDescriptor] = []
    for _ in 0..<count {
      if let next = try lock.withLock({ try descriptor?.accept() }) { accepted.append(next.descriptor) }
    }
    return accepted
  }
}

@Suite("Connecting to hosts", .timeLimit(.minutes(20)))
struct HostConnectionTests {
  /// Connects on virtual time, and returns the log.
  private func connecting(
    _ addresses: [String], timeout: Duration? = nil, delay: Duration = .milliseconds(250),
    options: Socket.Options = .init(),
    _ meanwhile: @escaping @Sendable (RunLoop, @escaping @Sendable () -> Void) -> Void = { _, _ in }
  ) -> String {
    onVirtualSocketLoop { loop, log in
      let host = try ScriptedHost(loop)
      let connection = try host.connect(addresses, timeout: timeout, delay: delay, options: options, log)
      meanwhile(loop) { try? host.makeRoom() }
      loop.run(mode: .default, for: .seconds(20))
      log.write("\(connection.isFinished)")
      for socket in host.made.value { socket.invalidate() }
    }
  }

  @Test("address families alternate, beginning with the first, each in its order")
  func interleaved() throws {
    func order(_ texts: String...) throws -> [String] {
      ConnectionRace.interleaved(try texts.map { try SocketAddress($0) }).map(\.description)
    }
    #expect(try order() == [])
    #expect(
      try order("[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1")
        == ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"])
    #expect(try order("1.1.1.1:1", "[::1]:1", "[::2]:1") == ["1.1.1.1:1", "[::1]:1", "[::2]:1"])
    #expect(try order("1.1.1.1:1", "2.2.2.2:1") == ["1.1.1.1:1", "2.2.2.2:1"])
  }

  @Test("after 250 ms without a response the next address is tried; all but the winner are closed")
  func delayed() {
    let log = connecting(["[::1]:2", "[::2]:2", "1.1.1.1:2", "2.2.2.2:1", "[::3]:2"])
    #expect(
      log == "[[::1]:2@0 1.1.1.1:2@250 [::2]:2@500 2.2.2.2:1@750] true true false true @750 true")
  }

  @Test("after a rejection the next address is tried immediately, and the delay counts from then")
  func rejected() {
    let log = connecting(["[::1]:3", "1.1.1.1:2", "[::2]:3", "2.2.2.2:1"])
    #expect(log == "[[::1]:3@0 1.1.1.1:2@0 [::2]:3@250 2.2.2.2:1@250] true true false true @250 true")
  }

  @Test("an earlier address that responds late wins, and later attempts are closed")
  func late() {
    let log = connecting(["[::1]:2", "1.1.1.1:2", "[::2]:2"]) { loop, makeRoom in
      loop.schedule(in: .milliseconds(300)) { _ in makeRoom() }
    }
    #expect(log.hasPrefix("[[::1]:2@0 1.1.1.1:2@250] true true false true @3"), "\(log)")
  }

  @Test("if all addresses fail, the error lists each with its reason")
  func failed() throws {
    var options = Socket.Options()
    options.connectTimeout = .seconds(1)
    let log = connecting(["[::1]:3", "1.1.1.1:2"], options: options)
    let rejected = SocketError.system(
      SystemError(call: "connect", number: ECONNREFUSED), address: try SocketAddress("[::1]:3"))
    let error = HostConnectionError.failed(
      host: "h",
      attempts: [
        .init(address: try SocketAddress("[::1]:3"), outcome: .failed(rejected)),
        .init(
          address: try SocketAddress("1.1.1.1:2"),
          outcome: .failed(.timedOut(after: .seconds(1), address: try SocketAddress("1.1.1.1:2")))),
      ])
    #expect(log == "[[::1]:3@0 1.1.1.1:2@0] \(error) 0 @1000 true")
    #expect("\(error)".contains("[::1]:3: connect: Connection refused") && "\(error)".contains("1.1.1.1:2: nothing"))
  }

  @Test("one deadline ends all attempts, the error has the state of each, and all sockets are closed")
  func deadline() throws {
    let log = connecting(
      ["[::1]:3", "1.1.1.1:2", "[::2]:2"], timeout: .milliseconds(200), delay: .milliseconds(300))
    let rejected = SocketError.system(
      SystemError(call: "connect", number: ECONNREFUSED), address: try SocketAddress("[::1]:3"))
    let error = HostConnectionError.timedOut(
      host: "h", after: .milliseconds(200),
      attempts: [
        .init(address: try SocketAddress("[::1]:3"), outcome: .failed(rejected)),
        .init(address: try SocketAddress("1.1.1.1:2"), outcome: .connecting),
        .init(address: try SocketAddress("[::2]:2"), outcome: .notTried),
      ])
    #expect(log == "[[::1]:3@0 1.1.1.1:2@0] \(error) 0 @200 true")
  }

  @Test("the deadline includes the look-up, and addresses found after it are not tried")
  func lookup() {
    let log = onVirtualSocketLoop { loop, log in
      let host = try ScriptedHost(loop)
      let found = HostResolver.Answer.success([try SocketAddress("1.1.1.1:1")])
      let system = host.system(found, lookupTakes: .seconds(3))
      _ = HostConnector.start(host.request(.seconds(2)), system: system) { log.write("\($0) @\(host.seconds)") }
      loop.run(mode: .default, for: .seconds(5))
      log.write("\(host.begun.value)")
      let missing = host.system(.failure(.unknown(host: "h")))
      _ = HostConnector.start(host.request(.seconds(2)), system: missing) { log.write("\($0)") }
      loop.run(mode: .default, for: .seconds(5))
    }
    typealias Answer = Result<Socket, HostConnectionError>
    let late = Answer.failure(.timedOut(host: "h", after: .seconds(2), attempts: []))
    #expect(log == "\(late) @2000 [] \(Answer.failure(.lookup(.unknown(host: "h"))))")
  }

  @Test("a cancelled connection closes all of its sockets, releases its block, and calls nothing")
  func cancelled() {
    let log = onVirtualSocketLoop { loop, log in
      let host = try ScriptedHost(loop)
      let found = HostResolver.Answer.success([try SocketAddress("1.1.1.1:2"), try SocketAddress("[::1]:2")])
      let token = Box<Token?>(Token { log.write("released") })
      let connection = HostConnector.start(host.request(.seconds(9)), system: host.system(found)) {
        [token = token.value] _ in
        token?.touch()
        log.write("called")
      }
      token.value = nil
      loop.schedule(in: .seconds(1)) { _ in connection.cancel() }
      loop.run(mode: .default, for: .seconds(30))
      log.write("\(connection.isFinished) \(host.made.value.count) \(host.made.value.count(where: \.isValid))")
      connection.cancel()
    }
    #expect(log == "released true 2 0")
  }

  @Test("the number of addresses tried is limited, and the delay is at least ten milliseconds")
  func bounded() {
    let log = onVirtualSocketLoop { loop, log in
      let host = try ScriptedHost(loop)
      let addresses = try (0..<200).map { try SocketAddress("1.1.1.\($0):3") }
      _ = HostConnector.start(host.request(nil), system: host.system(.success(addresses))) { _ in
        log.write("\(host.begun.value.count)")
      }
      loop.run(mode: .default, for: .seconds(1))
      host.begun.value = []
      let silent = try (0..<3).map { try SocketAddress("1.1.1.\($0):2") }
      let connection = HostConnector.start(host.request(nil, .zero), system: host.system(.success(silent))) { _ in }
      let begin = loop.now
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(host.begun.value.count) \(loop.now - begin >= .milliseconds(20))")
      connection.cancel()
    }
    #expect(log == "\(ConnectionRace.limit) 3 true")
  }

  @Test("a name with one unreachable address is connected to by its other", arguments: [true, false])
  func reallyConnected(isIPv6: Bool) async throws {
    let (listener, twin) = try listenerWithoutTwin(isIPv6: isIPv6)
    defer { close(twin) }
    let port = try #require(listener.address.port)
    let (thread, loop) = SourceRig.startLoop()
    let workers = HostWorkers { query in
      .success([.loopback(port: query.port, family: .ipv6), .loopback(port: query.port)])
    }
    var system = HostConnector.System()
    system.resolve = { request, body in
      HostResolver.resolve(
        request.query, timeout: nil, on: request.loop, inModes: request.modes, by: workers, body)
    }
    let request = HostConnector.Request(
      query: .init(host: "both", port: port, family: nil), options: .init(), attemptDelay: .seconds(3600),
      timeout: nil, loop: loop, modes: [.common])
    let socket = try await Socket.connect(request, system: system)
    #expect(socket.isConnected)
    #expect(try socket.remoteAddress() == listener.address)
    let other = try await Socket.connect(toHost: try #require(listener.address.host), port: port, on: loop)
    #expect(other.isConnected)
    loop.perform { loop.stop() }
    thread.join()
    let rejected = loop.statistics.rejectionCount
    await #expect(throws: HostConnectionError.loopHasEnded(host: "::1")) {
      _ = try await Socket.connect(toHost: "::1", port: port, on: loop)
    }
    #expect(loop.statistics.rejectionCount == rejected)
  }

  @Test("a task that is cancelled, or whose loop ends, stops waiting, and nothing stays open")
  func tasks() async throws {
    let (thread, loop) = SourceRig.startLoop()
    let made = Box(0)
    let last = Box(WeakBox<Socket>(nil))
    let full = try ListeningSocket(
      at: SocketAddress(abstractName: socketPath()), options: ListeningSocket.Options(backlog: 0))
    let filling = try [Socket(connectingTo: full.address), Socket(connectingTo: full.address)]
    var system = HostConnector.System()
    system.connect = { _, options, handler in
      Result { () throws(SocketError) in
        let socket = try Socket(connectingTo: full.address, options: options, handler: handler)
        last.value = WeakBox(socket)
        made.value += 1
        return socket
      }
    }
    let request = HostConnector.Request(
      query: .init(host: "127.0.0.1", port: 1, family: nil), options: .init(), attemptDelay: .seconds(1),
      timeout: nil, loop: loop, modes: [.default])
    let given = system
    let first = Task { try await Socket.connect(request, system: given) }
    await yieldUntil { made.value == 1 }
    first.cancel()
    await #expect(throws: HostConnectionError.cancelled(host: "127.0.0.1")) { _ = try await first.value }
    await yieldUntil { last.value.object == nil }
    let second = Task { try await Socket.connect(request, system: given) }
    await yieldUntil { made.value == 2 }
    loop.perform { loop.stop() }
    thread.join()
    await #expect(throws: HostConnectionError.loopHasEnded(host: "127.0.0.1")) { _ = try await second.value }
    withExtendedLifetime(filling) {}
  }

  #if DEBUG
    @Test("an address for which the system has no resources fails, and the next is tried")
    func fault() throws {
      let log = onVirtualSocketLoop { loop, log in
        let host = try ScriptedHost(loop)
        let plan = FaultPlan()
        plan.plan(.socket, .fails(EMFILE))
        plan.plan(.epollCreate, .fails(ENFILE))
        _ = try host.connect(["[::1]:1", "1.1.1.1:1", "[::2]:1"], log)
        _ = plan.rule { loop.run(mode: .default, for: .seconds(1)) }
        log.write("\(plan.isUsedUp)")
        for socket in host.made.value { socket.invalidate() }
      }
      #expect(log == "[[::1]:1@0 1.1.1.1:1@0 [::2]:1@0] true true false true @0 true")
    }
  #endif
}

extension ListeningSocket.Options {
  fileprivate init(backlog: Int) {
    self.init()
    self.backlog = backlog
  }
}
