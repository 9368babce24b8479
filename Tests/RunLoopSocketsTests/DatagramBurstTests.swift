// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import RunLoopSystemEvents
import TestSupport
import Testing

@testable import RunLoopSockets

/// A receiver that has received four datagrams at once, and so reads the next ones with one system call.
private final class BurstRig: @unchecked Sendable {
  // Sendable: everything but the socket is used by the loop's thread only.

  let loop: RunLoop
  let log: Log
  let receiver: DatagramSocket
  let sender: DatagramSocket
  private var number = 0
  /// Called with the number of each datagram after it was logged.
  var onReceive: ((Int) -> Void)?

  init(_ loop: RunLoop, _ log: Log, kind: String = "127.0.0.1:0", limit: Int = 65_507) throws {
    (self.loop, self.log) = (loop, log)
    var options = DatagramSocket.Options()
    options.maximumDatagramSize = limit
    receiver = try DatagramSocket(boundTo: socketAddress(kind), options: options)
    sender = try DatagramSocket(boundTo: socketAddress(kind), connectedTo: receiver.localAddress())
    receiver.handler = { [unowned self] _, event in heard(event) }
    try loop.add(receiver, forMode: .default)
    send(4)
    run()
  }

  private func heard(_ event: DatagramSocket.Event) {
    switch event {
    case .received(let bytes, let envelope):
      let isWhole = envelope.byteCount == bytes.byteCount && !envelope.isTruncated
      let isFromSender = envelope.sender == (try? sender.localAddress())
      log.write(text(bytes) + (isWhole && isFromSender ? "" : "?"))
      onReceive?(Int(text(bytes)) ?? -1)
    case .failed(.system(let error, _)): log.write("failed(\(error.call):\(error.number))")
    case .closed(.system(let error, _)): log.write("closed(\(error.call):\(error.number))")
    case .failed, .closed, .writable: log.write("?")
    }
  }

  /// Sends the next `count` numbers.
  func send(_ count: Int) {
    for _ in 0..<count {
      number += 1
      #expect((try? sender.send(Array("\(number)".utf8))) == true)
    }
  }

  @discardableResult
  func run(_ mode: RunLoop.Mode = .default) -> RunLoop.RunResult { loop.run(mode: mode, for: .milliseconds(1)) }
}

/// Runs a body with a rig, and returns the log.
private func burst(
  kind: String = "127.0.0.1:0", _ body: @escaping @Sendable (BurstRig) throws -> Void
) -> String {
  onVirtualSocketLoop { loop, log in
    let rig = try BurstRig(loop, log, kind: kind)
    try body(rig)
    rig.receiver.invalidate()
  }
}

private func numbers(_ range: ClosedRange<Int>) -> String { range.map { "\($0)" }.joined(separator: " ") }

@Suite("Datagrams that arrive together", .timeLimit(.minutes(20)))
struct DatagramBurstTests {
  @Test("datagrams that arrive together keep their order, contents and sender", arguments: socketKinds)
  func order(kind: String) {
    // A Unix socket has room for ten by default.
    let count = kind.hasPrefix("unix") ? 8 : 40
    let log = burst(kind: kind) { rig in
      #expect(rig.receiver.state.batch.isBurst)
      rig.send(count)
      rig.run()
    }
    #expect(log == numbers(1...4 + count))
  }

  @Test("one system call receives sixteen datagrams, and no other follows when there were fewer")
  func calls() {
    let log = burst { rig in
      rig.send(20)
      let plan = FaultPlan()
      _ = plan.rule { rig.run() }
      #expect(plan.counts[.datagramsReceive] == 2 && plan.counts[.datagramReceive] == nil)
    }
    #expect(log == numbers(1...24))
  }

  @Test("an empty datagram and one that is too long are recognized among others")
  func lengths() {
    let log = onVirtualSocketLoop { loop, log in
      var options = DatagramSocket.Options()
      options.maximumDatagramSize = 3
      let receiver = try DatagramSocket(boundTo: .loopback(port: 0), options: options) { _, event in
        guard case .received(let bytes, let envelope) = event else { return }
        log.write("<\(text(bytes))>" + (envelope.isTruncated ? "… of \(envelope.byteCount)" : ""))
      }
      try loop.add(receiver, forMode: .default)
      let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress())
      for texts in [["1", "2", "3", "4"], ["", "abcd", "abc", ""]] {
        for text in texts { try sender.send(Array(text.utf8)) }
        loop.run(mode: .default, for: .milliseconds(1))
      }
    }
    #expect(log == "<1> <2> <3> <4> <> <abc>… of 4 <abc> <>")
  }

  @Test("a run nested in a handler continues with the next datagram, and none is reported twice")
  func nested() {
    let log = burst { rig in
      rig.onReceive = { number in
        guard [6, 9].contains(number) else { return }
        rig.log.write("(")
        rig.run()
        rig.log.write(")")
      }
      rig.send(6)
      rig.run()
      rig.send(2)
      rig.run()
    }
    // The nested run has left nothing for the run around it.
    #expect(log == "1 2 3 4 5 6 ( 7 8 9 ( 10 ) ) 11 12")
  }

  @Test("a nested run in another mode leaves datagrams to the run around it")
  func otherMode() {
    let log = burst { rig in
      rig.loop.add(RunLoop.Source {}, forMode: .tracking)
      rig.onReceive = { number in
        guard number == 6 else { return }
        rig.log.write("(")
        rig.run(.tracking)
        rig.log.write(")")
      }
      rig.send(4)
      rig.run()
    }
    #expect(log == "1 2 3 4 5 6 ( ) 7 8")
  }

  @Test("another library's nested run continues with the next datagram")
  func guest() {
    let log = burst { rig in
      rig.onReceive = { number in
        guard number == 6, let guest = try? RunLoop.Guest() else { return }
        rig.log.write("(")
        for _ in 0..<8 { guest.service() }
        guest.invalidate()
        rig.log.write(")")
      }
      rig.send(4)
      rig.run()
    }
    #expect(log == "1 2 3 4 5 6 ( 7 8 )")
  }

  @Test("a socket that is paused in a handler keeps received datagrams, and delivers them before later ones")
  func paused() {
    let log = burst { rig in
      rig.onReceive = { number in
        if number == 6 { rig.receiver.pauseReading() }
        // The timer has fired for the kept datagrams, and there is no other.
        if number == 7 { #expect(rig.receiver.lock.withLock { rig.receiver.registrations.timer } == nil) }
      }
      rig.send(4)
      rig.run()
      rig.log.write("paused")
      rig.run()
      rig.send(2)
      rig.receiver.resumeReading()
      rig.run()
    }
    #expect(log == "1 2 3 4 5 6 paused 7 8 9 10")
  }

  @Test("a run nested in the handler of a kept datagram continues with the next one, before later ones")
  func nestedInKept() {
    let log = burst { rig in
      rig.onReceive = { number in
        if number == 5 { rig.receiver.pauseReading() }
        guard number == 6 else { return }
        rig.log.write("(")
        rig.run()
        rig.log.write(")")
      }
      rig.send(4)
      rig.run()
      // The handler is called because the descriptor is ready, not by the timer for kept datagrams.
      rig.send(1)
      rig.receiver.resumeReading()
      rig.receiver.lock.withLock { rig.receiver.registrations.replaceTimer(nil) }?.invalidate()
      rig.run()
    }
    #expect(log == "1 2 3 4 5 6 ( 7 8 9 )")
  }

  @Test("kept datagrams are delivered on the loop of the socket when it resumes")
  func moved() throws {
    let (thread, other) = SourceRig.startLoop()
    let log = onNewThread {
      let log = Log()
      do {
        let rig = try BurstRig(RunLoop.current, log)
        let loop = rig.loop
        let isOver = Latch()
        rig.onReceive = { number in
          if number == 6 {
            rig.receiver.pauseReading()
            loop.stop()
          }
          log.write(RunLoop.current == other ? "there" : "here")
          if number == 8 { isOver.open() }
        }
        rig.send(4)
        loop.runUntilStopped()
        loop.remove(rig.receiver, forMode: .default)
        rig.receiver.resumeReading()
        try other.add(rig.receiver, forMode: .default)
        isOver.wait()
        rig.receiver.invalidate()
      } catch { log.write("threw \(error)") }
      return log.text
    }
    #expect(log == "1 2 3 4 5 here 6 here 7 there 8 there")
    other.perform { other.stop() }
    thread.join()
  }

  @Test("a socket that is closed in a handler reports nothing more", arguments: [true, false])
  func closed(isAlone: Bool) {
    let log = burst { rig in
      rig.onReceive = { number in
        guard number == 6 else { return }
        rig.receiver.invalidate()
        if !isAlone { rig.run() }
      }
      rig.send(4)
      rig.run()
      rig.log.write("\(rig.receiver.kept.count)")
    }
    #expect(log == "1 2 3 4 5 6 0")
  }

  @Test("a handler that replaces another, or a task, receives the remaining datagrams")
  func replaced() async throws {
    let (thread, loop) = SourceRig.startLoop()
    let receiver = try DatagramSocket(boundTo: .loopback(port: 0))
    let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress())
    let log = Log()
    let heard = Box<CheckedContinuation<Void, Never>?>(nil)
    receiver.handler = { socket, event in
      guard case .received(let bytes, _) = event else { return }
      log.write(text(bytes))
      guard text(bytes) == "5" else { return }
      socket.handler = { socket, event in
        guard case .received(let bytes, _) = event else { return }
        log.write("other \(text(bytes))")
        socket.handler = nil
        heard.value?.resume()
      }
    }
    let send: @Sendable (ClosedRange<Int>) -> Void = { range in
      for number in range { _ = try? sender.send(Array("\(number)".utf8)) }
    }
    // The loop's thread sends all of them first, so it finds them together.
    loop.perform {
      send(1...4)
      _ = try? loop.add(receiver, forMode: .default)
    }
    await withCheckedContinuation { continuation in
      loop.perform { loop.perform { loop.perform { continuation.resume() } } }
    }
    await withCheckedContinuation { continuation in
      heard.value = continuation
      loop.perform { send(5...8) }
    }
    for _ in 7...8 { log.write(String(decoding: try await receiver.receive()?.bytes ?? [], as: UTF8.self)) }
    #expect(log.text == "1 2 3 4 5 other 6 7 8")
    receiver.invalidate()
    loop.perform { loop.stop() }
    thread.join()
  }

  @Suite("Failures of receiving datagrams", .serialized, .timeLimit(.minutes(20)))
  struct Faults {
    private func burst(failing numbers: Int32...) -> String {
      onVirtualSocketLoop { loop, log in
        let rig = try BurstRig(loop, log)
        rig.send(4)
        let plan = FaultPlan()
        for number in numbers { plan.plan(.datagramsReceive, .fails(number)) }
        _ = plan.rule { loop.run(mode: .default, for: .seconds(1)) }
        log.write("\(plan.isUsedUp) \(rig.receiver.isValid)")
        rig.receiver.invalidate()
      }
    }

    @Test("an interrupted receive is repeated, and an empty one loses nothing")
    func interrupted() { #expect(burst(failing: EINTR, EAGAIN) == numbers(1...8) + " true true") }

    @Test("receiving is retried later without memory, and a network error is reported")
    func reported() {
      #expect(
        burst(failing: ENOMEM, EHOSTUNREACH)
          == "\(numbers(1...4)) failed(recvmmsg:\(ENOMEM)) failed(recvmmsg:\(EHOSTUNREACH)) 5 6 7 8 true true")
    }

    @Test("a permanent failure to receive is reported once and closes the socket")
    func fatal() { #expect(burst(failing: EBADF) == numbers(1...4) + " closed(recvmmsg:\(EBADF)) true false") }
  }
}
