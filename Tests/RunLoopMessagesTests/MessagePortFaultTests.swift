// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Glibc
  import Testing

  import TestSupport

  @testable import RunLoopCore
  @testable import RunLoopMessages

  @Suite("Message ports when system calls fail", .timeLimit(.minutes(20)))
  struct MessagePortFaultTests {
    /// A system call that fails after a number of successful calls.
    struct Failure: Sendable, CustomTestStringConvertible {
      let call: SystemCall
      let number: Int32
      var after = 0

      var error: MessagePortError { .system(SystemError(call: call.rawValue, number: number)) }
      var testDescription: String { "\(SystemError(call: call.rawValue, number: number)) after \(after)" }

      /// Returns the error that `body` throws while the call fails.
      func during<Result>(_ body: () throws(MessagePortError) -> Result) -> MessagePortError? {
        let plan = FaultPlan()
        for _ in 0..<after { plan.plan(call, nil) }
        plan.plan(call, .fails(number))
        let error = plan.rule { portError(body) }
        #expect(plan.isUsedUp)
        return error
      }
    }

    private static let making: [Failure] = [
      .init(call: .makeDirectory, number: ENOSPC), .init(call: .fileStatus, number: EIO),
      .init(call: .openFile, number: EMFILE), .init(call: .lockFile, number: ENOLCK),
      .init(call: .directoryDescriptor, number: EMFILE), .init(call: .directoryDescriptor, number: EMFILE, after: 1),
      .init(call: .fileStatus, number: EIO, after: 4), .init(call: .fileStatus, number: EIO, after: 5),
      .init(call: .fileStatus, number: EIO, after: 6), .init(call: .openFile, number: EMFILE, after: 1),
      .init(call: .unlink, number: EPERM), .init(call: .socket, number: EMFILE), .init(call: .bind, number: ENOSPC),
      .init(call: .descriptorMode, number: EPERM), .init(call: .listen, number: EADDRINUSE),
      .init(call: .epollCreate, number: EMFILE), .init(call: .duplicate, number: EMFILE),
      .init(call: .epollControl, number: ENOSPC),
    ]

    @Test("a port that cannot be created reports the reason, and leaves its name free", arguments: making)
    func local(failure: Failure) throws {
      let directory = try PortDirectory()
      func make() throws(MessagePortError) -> MessagePort.Local {
        try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
      }
      #expect(failure.during(make) == failure.error)
      let entries = directory.entries
      #expect(entries.isEmpty || entries == ["a.lock"])
      let port = try make()
      #expect(directory.entries == ["a", "a.lock"])
      port.invalidate()
    }

    @Test("an interrupted open or lock is repeated")
    func interrupted() throws {
      let directory = try PortDirectory()
      for call in [SystemCall.openFile, .lockFile] {
        let failure = Failure(call: call, number: EINTR)
        let error = failure.during { () throws(MessagePortError) in
          try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
        }
        #expect(error == nil)
      }
    }

    private static let connecting: [(Failure, MessagePortError?)] = [
      (.init(call: .fileStatus, number: EIO), nil), (.init(call: .fileStatus, number: ENOENT), .noSuchPort("a")),
      (.init(call: .socket, number: EMFILE), nil), (.init(call: .socketOption, number: ENOMEM), nil),
      (.init(call: .connect, number: ECONNREFUSED), .noSuchPort("a")),
      (.init(call: .connect, number: EAGAIN), .sendTimedOut), (.init(call: .connect, number: EACCES), nil),
      (.init(call: .socketOptionRead, number: ENOMEM), nil),
    ]

    @Test("a port that cannot be reached reports the reason", arguments: connecting)
    func remote(failure: Failure, error: MessagePortError?) throws {
      let directory = try PortDirectory()
      let port = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
      let actual = failure.during { () throws(MessagePortError) in
        try MessagePort.Remote(name: "a", directory: directory.place)
      }
      #expect(actual == error ?? failure.error)
      #expect(port.isValid)
    }

    private static let sending: [(Failure, Int, MessagePortError?)] = [
      (.init(call: .memoryCreate, number: EMFILE), 50_000, nil),
      (.init(call: .memoryWrite, number: ENOSPC), 50_000, nil),
      (.init(call: .memoryControl, number: EBUSY), 50_000, nil),
      (.init(call: .sendMessage, number: ENOBUFS), 1, nil),
      (.init(call: .sendMessage, number: ETOOMANYREFS), 1, nil),
      (.init(call: .sendMessage, number: EPIPE), 1, .peerClosed),
    ]

    @Test("a message that cannot be sent was not sent, and the next one can be", arguments: sending)
    func send(failure: Failure, size: Int, error: MessagePortError?) throws {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      let bytes = [UInt8](repeating: 1, count: size)
      let actual = failure.during { () throws(MessagePortError) in
        try remote.send(id: 1, bytes: bytes, receiveTimeout: .unlimited)
      }
      #expect(actual == error ?? failure.error)
      #expect(remote.statistics.sentCount == 0 && remote.state.pending.isEmpty)
      let oneWay = failure.during { () throws(MessagePortError) in try remote.send(id: 1, bytes: bytes) }
      #expect(oneWay == error ?? failure.error)
      #expect(remote.state.unconfirmed.count == 0)
      #expect(try remote.send(id: 1, bytes: bytes, receiveTimeout: .unlimited)?.bytes == bytes)
      #expect(server.port.statistics.receivedCount == 1)
    }

    private static let waiting: [(SystemCall, Int32)] = [
      (.sendMessage, EINTR), (.sendMessage, EAGAIN), (.receiveMessage, EINTR), (.receiveMessage, EAGAIN),
      (.receiveMessage, ECONNRESET), (.socketOption, ENOMEM),
    ]

    @Test("interrupted calls are repeated", arguments: waiting)
    func again(call: SystemCall, number: Int32) throws {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      let error = Failure(call: call, number: number).during { () throws(MessagePortError) in
        try remote.send(id: 1, bytes: [1], receiveTimeout: .unlimited)
      }
      #expect(error == nil)
      #expect(server.port.statistics.replyCount == 1)
    }

    @Test("an error in reading ends a remote port with that error")
    func receive() throws {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      let failure = Failure(call: .receiveMessage, number: ENOMEM)
      let error = failure.during { () throws(MessagePortError) in
        try remote.send(id: 1, bytes: [1], receiveTimeout: .unlimited)
      }
      #expect(error == failure.error)
      #expect(!remote.isValid)
      #expect(server.port.isValid)
    }

    @Test("memory that cannot be read is rejected, and the sender is notified", arguments: [SystemCall.memoryRead])
    func memory(call: SystemCall) throws {
      let directory = try PortDirectory()
      let outcome = serveHere(directory, Failure(call: call, number: EIO), bytes: 50_000)
      #expect(outcome.error == .rejected(.noResources))
      #expect(outcome.statistics.lackingResourceCount == 1)
    }

    private static let serving: [(Failure, MessagePortError)] = [
      (.init(call: .accept, number: EMFILE), .peerClosed), (.init(call: .accept, number: ENFILE), .peerClosed),
      (.init(call: .epollControl, number: ENOSPC), .rejected(.noResources)),
      (.init(call: .socketOptionRead, number: ENOMEM), .rejected(.untrusted)),
      (.init(call: .receiveMessage, number: ENOMEM), .peerClosed),
      (.init(call: .sendMessage, number: ENOBUFS), .rejected(.noResources)),
    ]

    @Test("a receiver that cannot continue with a sender notifies it or ends the connection", arguments: serving)
    func serve(failure: Failure, error: MessagePortError) throws {
      let directory = try PortDirectory()
      let outcome = serveHere(directory, failure, bytes: 1)
      #expect(outcome.error == error)
      #expect(outcome.isServing)
    }

    @Test("a call that fails temporarily only delays a message", arguments: [SystemCall.accept, .epollWait])
    func delayed(call: SystemCall) throws {
      let directory = try PortDirectory()
      let outcome = serveHere(directory, Failure(call: call, number: EINTR), bytes: 1)
      #expect(outcome.error == nil)
      #expect(outcome.isServing)
    }

    @Test("a receiver without a reserve descriptor opens one when descriptors are available")
    func reserve() throws {
      let directory = try PortDirectory()
      let port = try MessagePort.Local(name: "a", directory: directory.place) { MessagePort.Reply($0.bytes) }
      let errors = onNewThread { () -> [MessagePortError?] in
        guard (try? RunLoop.current.add(port, forMode: .default)) != nil else { return [] }
        let plan = FaultPlan()
        plan.plan(.accept, .fails(EMFILE), nil, .fails(EMFILE), nil)
        plan.plan(.duplicate, .fails(EMFILE))
        return (0..<3).map { _ in
          let isOver = Box(false)
          let asking = startThread { () -> MessagePortError? in
            defer { isOver.value = true }
            return portError { () throws(MessagePortError) in
              try MessagePort.Remote(name: "a", directory: directory.place).send(id: 1, receiveTimeout: .unlimited)
            }
          }
          plan.rule { while !isOver.value { RunLoop.current.run(mode: .default, for: .milliseconds(10)) } }
          return asking.result()
        }
      }
      #expect(errors == [.peerClosed, .peerClosed, nil])
      port.invalidate()
    }

    /// Returns the sender's result when a call of the receiver fails, and whether the receiver serves the next
    /// request.
    private func serveHere(
      _ directory: PortDirectory, _ failure: Failure, bytes: Int
    ) -> (error: MessagePortError?, isServing: Bool, statistics: MessagePort.Local.Statistics) {
      let isReady = Box(false)
      let hasEnded = Box(false)
      let server = startThread { () -> MessagePort.Local.Statistics in
        guard
          let port = try? MessagePort.Local(
            name: "a", directory: directory.place, handler: { MessagePort.Reply($0.bytes) })
        else { return .init() }
        try? RunLoop.current.add(port, forMode: .default)
        isReady.value = true
        let plan = FaultPlan()
        plan.plan(failure.call, .fails(failure.number))
        plan.rule {
          while !hasEnded.value {
            RunLoop.current.run(mode: .default, for: .milliseconds(10), returnAfterSourceHandled: true)
          }
        }
        return port.statistics
      }
      waitUntil { isReady.value }
      func ask() -> MessagePortError? {
        portError { () throws(MessagePortError) in
          let remote = try MessagePort.Remote(name: "a", directory: directory.place)
          return try remote.send(
            id: 1, bytes: [UInt8](repeating: 1, count: bytes), receiveTimeout: .unlimited)
        }
      }
      let error = ask()
      let next = ask()
      hasEnded.value = true
      return (error, next == nil, server.result())
    }
  }
#endif
