// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The messages of a port", .timeLimit(.minutes(20)))
struct PortMessageTests {
  @Test("a message carries its number and parts, and waits for a loop", .rule(.m6))
  func content() {
    let log = received(Port.Message(id: 7, components: [[1, 2], [], [3]]))
    #expect(log == "7 [1, 2] [] [3] no reply port")
  }

  @Test("message parts may be bytes, ports, and anything that may cross threads")
  func parts() {
    let carried = Port()
    let message = Port.Message(id: 1, components: [.bytes([9]), .port(carried), .value("text"), .value(carried)])
    #expect(received(message) == "1 [9] a port text a port no reply port")
    let parts = message.components
    #expect(parts.map { $0.bytes } == [[9], nil, nil, nil])
    #expect(parts.map { $0.port === carried } == [false, true, false, false])
    #expect(parts.map { $0.value(as: String.self) } == [nil, nil, "text", nil])
    #expect(parts.map { $0.value(as: Port.self) === carried } == [false, false, false, true])
  }

  @Test("a message may have no parts in any spelling")
  func empty() {
    let bytes: [[UInt8]] = []
    for message in [.init(), .init(components: []), .init(id: 0, components: bytes)] as [Port.Message] {
      #expect(received(message) == "0 no reply port")
    }
  }

  @Test("payloads are not copied: the receiver gets the sender's memory and object")
  func noCopies() {
    let bytes = [UInt8](repeating: 7, count: 4096)
    let payload = Payload()
    let seen = onVirtualTime { _, loop in
      let seen = Box<[Bool]>([])
      let sent = address(of: bytes)
      let port = Port { _, message in
        seen.value = [
          message.components[0].bytes.map(address) == sent,
          message.components[1].bytes.map(address) == sent,
          message.components[2].value(as: Payload.self) === payload,
          message.components[3].value(as: [UInt8].self).map(address) == sent,
        ]
      }
      loop.add(port, forMode: .default)
      var message = Port.Message(components: [bytes, bytes])
      message.components += [.value(payload), .value(bytes)]
      try? port.send(message)
      loop.run(mode: .default, for: .milliseconds(1))
      return seen.value
    }
    #expect(seen == [true, true, true, true])
  }

  @Test("a receiver replies through the reply port, on the loop of the sending thread")
  func reply() {
    let log = onNewThread {
      let log = Log()
      let served = Box<RunLoop?>(nil)
      let service = Port { _, message in
        log.write("asked\(message.id)")
        try? message.replyPort?.send(.init(id: message.id * 2))
      }
      let server = RunningLoop { loop, _ in
        served.value = loop
        loop.add(service, forMode: .default)
      }
      let loop = RunLoop.current
      let answers = Port { _, message in
        log.write("answered\(message.id)")
        if message.id == 6 { loop.stop() }
      }
      loop.add(answers, forMode: .default)
      for id in 1...3 { try? service.send(.init(id: UInt32(id), replyPort: answers)) }
      log.write("\(loop.runUntilStopped())")
      served.value?.stop()
      _ = server.result()
      return log
    }
    #expect(log.count(of: "asked3") == 1 && log.count(of: "stopped") == 1)
    #expect((1...3).allSatisfy { log.count(of: "answered\($0 * 2)") == 1 })
  }

  @Test("a reply to an invalid reply port is rejected", .rule(.m14))
  func replyPortInvalid() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let answers = Port { _, _ in log.write("answered") }
      let service = Port { _, message in
        do throws(PortError) { try message.replyPort?.send(.init()) } catch { log.write("\(error)") }
      }
      loop.add(service, forMode: .default)
      loop.add(answers, forMode: .default)
      try? service.send(.init(replyPort: answers))
      answers.invalidate()
      loop.run(mode: .default, for: .milliseconds(1))
      return log.text
    }
    #expect(log == "the port is invalid")
  }

  @Test("a waiting message retains what it carries, and a received one does not")
  func holds() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port { _, _ in log.write("received") }
      loop.add(port, forMode: .default)
      do {
        let token = Token(log)
        try? port.send(.init(components: [.value(token)]))
      }
      log.write("sent")
      loop.run(mode: .default, for: .milliseconds(1))
      return log.text
    }
    #expect(log == "sent received released")
  }

  /// Describes a received message.
  private func received(_ message: Port.Message) -> String {
    onVirtualTime { _, loop in
      let log = Log()
      let port = Port { _, message in
        log.write("\(message.id)")
        for part in message.components { log.write(text(of: part)) }
        log.write(message.replyPort == nil ? "no reply port" : "a reply port")
      }
      try? port.send(message)
      loop.add(port, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
      return log.text
    }
  }

  private func text(of part: Port.Message.Component) -> String {
    switch part {
    case .bytes(let bytes): "\(bytes)"
    case .port: "a port"
    case .value(let value): value is Port ? "a port" : "\(value)"
    }
  }

  private func address(of bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { Int(bitPattern: $0.baseAddress) } }
}

private final class Payload: Sendable {}
