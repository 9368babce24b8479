// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Taking over listening descriptors", .timeLimit(.minutes(20)))
struct SocketTakingOverTests {
  private func mode(_ path: String) -> mode_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
  }

  @Test("a waiting connection is accepted by the next owner, and the file stays until that is closed")
  func handOver() {
    let log = onSocketLoop { loop, log in
      let path = socketPath()
      let first = try ListeningSocket(at: SocketAddress(path: path)) { _, _ in log.write("wrong") }
      try loop.add(first, forMode: .default)
      let client = try Socket(connectingTo: first.address)
      let descriptor = try first.handOver()
      log.write("\(first.isValid) \(fcntl(descriptor, F_GETFD) == FD_CLOEXEC) \(access(path, F_OK))")
      log.write(socketFailure { _ = try first.handOver() })
      // As a program receives it from a careless predecessor.
      _ = fcntl(descriptor, F_SETFL, 0)
      _ = fcntl(descriptor, F_SETFD, 0)
      let second = try ListeningSocket(takingOver: descriptor, options: .init()) { _, event in
        if case .accepted = event { log.write("accepted") }
        loop.stop()
      }
      log.write("\(second.address == first.address)")
      log.write("\(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0) \(fcntl(descriptor, F_GETFD) == FD_CLOEXEC)")
      try loop.add(second, forMode: .default)
      loop.runUntilStopped()
      second.invalidate()
      log.write("\(access(path, F_OK))")
      client.invalidate()
    }
    #expect(log == "false true 0 \(SocketError.invalid) true true true accepted -1")
  }

  @Test("a descriptor that does not listen is rejected, and stays its owner's")
  func rejected() throws {
    func failure(_ descriptor: Int32) -> String {
      socketFailure { _ = try ListeningSocket(takingOver: descriptor, options: .init()) }
    }
    let (one, other) = try socketPair()
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    var pipes: [Int32] = [0, 0]
    try #require(pipe(&pipes) == 0)
    #expect(failure(one) == "\(one) getsockopt:\(EINVAL)")
    #expect(failure(ends[0]) == "\(ends[0]) getsockopt:\(EPROTOTYPE)")
    #expect(failure(pipes[0]) == "\(pipes[0]) getsockopt:\(ENOTSOCK)")
    #expect(failure(-1) == "-1 getsockopt:\(EBADF)")
    for descriptor in [one, other] + ends + pipes { #expect(close(descriptor) == 0) }
  }

  @Test("a socket's file has the requested mode, whatever the umask", arguments: [0o600, 0o666, 0o777])
  func fileMode(wanted: UInt16) throws {
    var options = ListeningSocket.Options()
    options.fileMode = wanted
    let path = socketPath()
    let listener = try ListeningSocket(at: SocketAddress(path: path), options: options)
    #expect(mode(path) == mode_t(wanted))
    listener.invalidate()
    // An address without a file has no mode.
    try ListeningSocket(at: SocketAddress(abstractName: path), options: options).invalidate()
  }

  private func activation(
    _ variables: [String: String], first: Int32 = 3
  ) -> Result<[String], SocketActivationError> {
    do throws(SocketActivationError) {
      return .success(
        try SocketActivation.read(process: 77, first: first) { variables[$0] }.map { "\($0.number)=\($0.name)" })
    } catch {
      return .failure(error)
    }
  }

  @Test("a service manager's descriptors are those from number three on, with their names")
  func activated() throws {
    let kept = open("/dev/null", O_RDONLY)
    defer { close(kept) }
    // The following numbers may be in use for other purposes, so one descriptor must suffice.
    func answer(_ names: String?) -> Result<[String], SocketActivationError> {
      activation(
        ["LISTEN_PID": "77", "LISTEN_FDS": "1"].merging(names.map { ["LISTEN_FDNAMES": $0] } ?? [:]) { $1 }, first: kept
      )
    }
    #expect(answer("web") == .success(["\(kept)=web"]))
    #expect(fcntl(kept, F_GETFD) == FD_CLOEXEC)
    #expect(answer(nil) == .success(["\(kept)=unknown"]))
    #expect(answer(":x") == .success(["\(kept)=unknown"]))
    #expect(activation(["LISTEN_PID": "78", "LISTEN_FDS": "1"]) == .success([]))
    #expect(activation(["LISTEN_FDS": "1"]) == .success([]))
    #expect(activation(["LISTEN_PID": "77", "LISTEN_FDS": "0"]) == .success([]))
  }

  @Test("a malformed variable is an error that names it, and so is a descriptor that is not open")
  func malformed() {
    for value in ["", "x", "-1", "99999999999"] {
      #expect(
        activation(["LISTEN_PID": value, "LISTEN_FDS": "1"])
          == .failure(.malformed(variable: "LISTEN_PID", value: value)))
      #expect(
        activation(["LISTEN_PID": "77", "LISTEN_FDS": value])
          == .failure(.malformed(variable: "LISTEN_FDS", value: value)))
    }
    #expect(
      activation(["LISTEN_PID": "77", "LISTEN_FDS": "2"], first: 1_000_000)
        == .failure(.notOpen(descriptor: 1_000_000, SystemError(call: "fcntl", number: EBADF))))
  }

  #if DEBUG
    @Test("a fault at one of several descriptors names it, and the next call can still take them all")
    func activationFaults() throws {
      try withNeighbours { first in
        for call in 0..<4 {
          let plan = FaultPlan()
          for _ in 0..<call { plan.plan(.descriptorFlags, nil) }
          plan.plan(.descriptorFlags, .fails(ENOMEM))
          let answer = plan.rule { activation(["LISTEN_PID": "77", "LISTEN_FDS": "2"], first: first) }
          let error = SystemError(call: "fcntl", number: ENOMEM)
          #expect(answer == .failure(.notOpen(descriptor: first + Int32(call / 2), error)))
          #expect(plan.isUsedUp)
          for number in [first, first + 1] { #expect(fcntl(number, F_GETFD) == 0, "call \(call)") }
        }
        #expect(
          activation(["LISTEN_PID": "77", "LISTEN_FDS": "2"], first: first)
            == .success(["\(first)=unknown", "\(first + 1)=unknown"]))
        for number in [first, first + 1] { #expect(fcntl(number, F_GETFD) == FD_CLOEXEC) }
      }
    }

    /// Creates two descriptors with consecutive numbers that stay open on exec.
    private func withNeighbours(_ body: (Int32) throws -> Void) throws {
      let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
      try #require(null >= 0)
      defer { close(null) }
      // High numbers are free. If two are not consecutive, the first is closed.
      var first = fcntl(null, F_DUPFD, 700)
      while true {
        try #require(first >= 0)
        let ends = (first, fcntl(null, F_DUPFD, first + 1))
        defer { for end in [ends.0, ends.1] { close(end) } }
        if ends.1 == first + 1 { return try body(first) }
        first = fcntl(null, F_DUPFD, ends.1 + 1)
      }
    }

    @Test(
      "a fault while a listener is taken over is thrown, and the descriptor stays its owner's",
      arguments: [(SystemCall.socketOptionRead, ENOBUFS), (.descriptorFlags, EPERM), (.socketName, ENOBUFS)])
    func faults(call: SystemCall, number: Int32) throws {
      let listener = try ListeningSocket(at: .loopback(port: 0))
      let descriptor = try listener.handOver()
      let plan = FaultPlan()
      plan.plan(call, .fails(number))
      plan.rule {
        let failure = socketFailure { _ = try ListeningSocket(takingOver: descriptor, options: .init()) }
        #expect(failure == "\(descriptor) \(call.rawValue):\(number)")
      }
      #expect(plan.isUsedUp && close(descriptor) == 0)
    }

    @Test("without a free descriptor no socket is handed over, and the socket continues")
    func notHandedOver() throws {
      let listener = try ListeningSocket(at: .loopback(port: 0))
      let plan = FaultPlan()
      plan.plan(.duplicate, .fails(EMFILE))
      plan.rule {
        #expect(socketFailure { _ = try listener.handOver() } == "\(SystemCall.duplicate.rawValue):\(EMFILE)")
      }
      #expect(listener.isValid)
    }

    @Test("a file whose mode cannot be set is removed", arguments: [SystemCall.descriptorMode, .openFile, .changeMode])
    func modeFault(call: SystemCall) throws {
      let path = socketPath()
      let plan = FaultPlan()
      plan.plan(call, .fails(EPERM))
      var options = ListeningSocket.Options()
      options.fileMode = 0o600
      let given = options
      try plan.rule {
        let address = try SocketAddress(path: path)
        #expect(socketFailure { _ = try ListeningSocket(at: address, options: given) } == "\(call.rawValue):\(EPERM)")
      }
      #expect(access(path, F_OK) == -1)
    }
  #endif
}
