// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Ports in Foundation's spelling", .timeLimit(.minutes(20)))
struct PortSpellingTests {
  /// Lets a new loop receive what is sent, and returns the delegate's result.
  private func received(
    mode: RunLoop.Mode = .default, _ send: @escaping @Sendable (Port) -> Bool,
    _ text: @escaping @Sendable (PortMessage, Port) -> String
  ) -> String {
    onVirtualTime { _, loop in
      let log = Log()
      let port = Port()
      let delegate = ClosureDelegate { log.write(text($0, port)) }
      port.setDelegate(delegate)
      port.schedule(in: loop, forMode: mode)
      log.write("\(send(port))")
      loop.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
      withExtendedLifetime(delegate) {}
      return log.text
    }
  }

  @Test("a bare port keeps a loop alive until it is invalidated")
  func bare() {
    let log = onVirtualTime { _, loop in
      let port = Port()
      loop.add(port, forMode: .default)
      let first = loop.run(mode: .default, for: .milliseconds(1))
      port.invalidate()
      return "\(first) \(loop.run(mode: .default, for: .milliseconds(1))) \(port.isValid)"
    }
    #expect(log == "timedOut finished false")
  }

  @Test("a port's delegate receives data and ports, with the message's number and both of its ends")
  func delegate() {
    let reply = Port()
    let log = received { port in
      let parts: NSMutableArray = [Data([1, 2, 3]), reply, NSData(data: Data(count: 40))]
      return port.send(before: .distantPast, msgid: 7, components: parts, from: reply, reserved: 0)
    } _: { message, port in
      let parts = message.components ?? []
      let first = (parts[0] as? NSData).map { Array($0 as Data) } ?? []
      return "\(message.msgid) \(first) \(parts[1] === reply) \((parts[2] as? NSData)?.length ?? -1) "
        + "\(message.sendPort === reply) \(message.receivePort === port)"
    }
    #expect(log == "true 7 [1, 2, 3] true 40 true true")
  }

  // L19: Foundation's socket ports lose messages as small as these.
  @Test("a message may be minimal", arguments: [0, 1, 11])
  func small(count: Int) {
    let log = received { port in
      let parts = count == 0 ? nil : NSMutableArray(array: [Data(count: count)])
      return port.send(before: .distantPast, components: parts, from: nil, reserved: 0)
    } _: { message, _ in
      "\(message.msgid) \(message.components?.map { ($0 as? NSData)?.length ?? -1 } ?? [-2]) \(message.sendPort == nil)"
    }
    #expect(log == "true 0 \(count == 0 ? [] : [count]) true")
  }

  // L20: In Foundation, the receiver sees its own address in place of the sender's.
  @Test("a receiver replies to the port named by the sender")
  func answer() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let (service, client) = (Port(), Port())
      let server = ClosureDelegate { message in
        log.write("asked\(message.msgid)")
        let answer = PortMessage(sendPort: message.sendPort, receivePort: nil, components: [NSData()])
        answer.msgid = message.msgid + 1
        log.write("\(answer.send(before: .distantPast))")
      }
      let asker = ClosureDelegate { message in
        log.write("answered\(message.msgid) \(message.receivePort === client) \(message.sendPort == nil)")
      }
      service.setDelegate(server)
      client.setDelegate(asker)
      for port in [service, client] { loop.add(port, forMode: .common) }
      let question = PortMessage(sendPort: service, receivePort: client, components: nil)
      question.msgid = 41
      question.send(before: Date())
      loop.run(mode: .default, for: .milliseconds(1))
      withExtendedLifetime((server, asker)) {}
      return log.text
    }
    #expect(log == "asked41 true answered42 true true")
  }

  // L21: In Foundation, a socket port that is scheduled in the common modes never receives.
  @Test("a port in the common modes receives messages")
  func common() {
    let log = received(mode: .common) {
      $0.send(before: .distantPast, components: nil, from: nil, reserved: 0)
    } _: { message, _ in
      "received\(message.msgid)"
    }
    #expect(log == "true received0")
  }

  @Test("message numbers have 32 bits", arguments: [(-1, UInt32.max), (1 << 32 + 5, 5), (7, 7)] as [(Int, UInt32)])
  func numbers(number: Int, sent: UInt32) {
    let log = received {
      $0.send(before: .distantPast, msgid: number, components: nil, from: nil, reserved: 99)
    } _: { message, _ in
      "\(message.msgid)"
    }
    #expect(log == "true \(sent)")
  }

  @Test("immutable data in a message arrives as the same object, and mutable data as sent")
  func objectsOnTheirWay() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let data = NSData(data: Data(repeating: 7, count: 4096))
      let mutable = NSMutableData(data: Data([1, 2, 3]))
      let port = Port()
      let delegate = ClosureDelegate { message in
        let parts = (message.components ?? []).compactMap { $0 as? NSData }
        log.write("\(parts[0] === data) \(Array(parts[1] as Data)) \(Array(parts[2] as Data))")
      }
      port.setDelegate(delegate)
      loop.add(port, forMode: .default)
      let late = NSMutableData(data: Data([5]))
      let first = PortMessage(sendPort: port, receivePort: nil, components: [data, mutable, late])
      log.write("\(first.send(before: Date()))")
      mutable.append(Data([4]))
      log.write("\(port.send(before: Date(), components: [data, mutable, late], from: nil, reserved: 0))")
      late.append(Data([6]))
      loop.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
      withExtendedLifetime(delegate) {}
      return log.text
    }
    #expect(log == "true true true [1, 2, 3] [5]")
  }

  @Test("message data in the port's own type is not copied")
  func ownData() {
    @Sendable func address(_ data: Data) -> Int { data.withUnsafeBytes { Int(bitPattern: $0.baseAddress) } }
    let payload = Data(repeating: 7, count: 4096)
    let sent = address(payload)
    let isSame = onVirtualTime { _, loop in
      let isSame = Box(false)
      let port = Port { _, message in isSame.value = message.components[0].data.map(address) == sent }
      loop.add(port, forMode: .default)
      try? port.send(.init(components: [.data(payload)]))
      loop.run(mode: .default, for: .milliseconds(1))
      return isSame.value
    }
    #expect(isSame && payload.count == 4096)
  }

  @Test("both spellings work together: a handler gets data, and a delegate whatever was sent")
  func bothSpellings() throws {
    let log = try onVirtualTime { _, loop in
      Result {
        let log = Log()
        let handled = Port { _, message in
          log.write("\(message.id) \(message.components.map { $0.data.map { Array($0) } ?? [] })")
        }
        let delegate = ClosureDelegate { message in
          let parts = message.components ?? []
          log.write("\((parts[0] as? NSData)?.length ?? -1) \((parts[1] as? NSData)?.length ?? -1)")
          log.write("\((parts[2] as? String) ?? "no text") \(parts[3] === handled)")
        }
        let delegated = Port()
        delegated.setDelegate(delegate)
        for port in [handled, delegated] { loop.add(port, forMode: .default) }
        handled.send(before: Date(), msgid: 3, components: [Data([1]), [2, 3] as [UInt8]], from: nil, reserved: 0)
        PortMessage(sendPort: handled, receivePort: nil, components: [NSData(data: Data([4]))]).send(before: Date())
        try delegated.send(
          .init(components: [.bytes([1, 2]), .data(Data(count: 3)), .value("text"), .port(handled)]))
        loop.run(mode: .default, for: .milliseconds(1))
        withExtendedLifetime(delegate) {}
        return log.text
      }
    }.get()
    // The ports take turns, each with the messages that it has.
    #expect(log == "3 [[1], [2, 3]] 0 [[4]] 2 3 text true")
  }

  @Test("sending an unsendable message returns false", .rule(.m21))
  func rejected() {
    func sends(_ port: Port, _ date: Date, _ parts: NSMutableArray? = nil) -> Bool {
      port.send(before: date, components: parts, from: nil, reserved: 0)
    }
    let full = Port(queueLimit: 1)
    #expect(sends(full, .distantPast) && !sends(full, .distantPast) && !sends(full, Date(timeIntervalSinceNow: 0.001)))
    let ended = Port()
    ended.invalidate()
    #expect(!sends(ended, .distantFuture))
    #expect(!sends(Port(), .distantPast, [NSObject()]))
    #expect(!PortMessage(sendPort: nil, receivePort: ended, components: nil).send(before: .distantFuture))
    #expect(!PortMessage(sendPort: Port(), receivePort: nil, components: [NSObject()]).send(before: .distantFuture))
  }

  @Test("a sender waits for room until its date, whatever the date is", arguments: [Double.infinity, .nan, 3600])
  func waits(seconds: Double) {
    let port = Port(queueLimit: 1)
    #expect(port.send(before: Date(timeIntervalSinceNow: seconds), components: nil, from: nil, reserved: 0))
    let sender = startThread {
      port.send(before: Date(timeIntervalSinceNow: seconds), components: nil, from: nil, reserved: 0)
    }
    onVirtualTime { _, loop in
      loop.add(port, forMode: .default)
      loop.run(mode: .default, for: .zero)
    }
    #expect(sender.result())
  }

  @Test("a port does not retain its delegate, counts unreceived messages, and prefers a handler")
  func noDelegate() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port()
      func send() {
        port.send(before: .distantPast, components: nil, from: nil, reserved: 0)
        loop.run(mode: .default, for: .milliseconds(1))
      }
      loop.add(port, forMode: .default)
      do {
        let delegate = ClosureDelegate { _ in log.write("received") }
        port.setDelegate(delegate)
        send()
        log.write("\(port.delegate() === delegate)")
      }
      send()
      log.write("\(port.delegate() == nil) \(port.droppedMessageCount)")
      let silent = Silent()
      port.setDelegate(silent)
      send()
      port.setDelegate(nil)
      log.write("\(port.delegate() == nil) \(port.droppedMessageCount)")
      let handled = Port { _, _ in log.write("handled") }
      handled.setDelegate(silent)
      loop.add(handled, forMode: .default)
      handled.send(before: .distantPast, components: nil, from: nil, reserved: 0)
      loop.run(mode: .default, for: .milliseconds(1))
      withExtendedLifetime(silent) {}
      return log.text
    }
    #expect(log == "received true true 1 true 1 handled")
  }

  @Test("ports and messages have the members of Foundation's objects")
  func objects() throws {
    let port = Port()
    let copies: [any NSCopying] = [port, PortMessage(sendPort: port, receivePort: nil, components: nil)]
    #expect(copies[0].copy(with: nil) as? Port === port && port.copy() as? Port === port)
    let message = try #require(copies[1] as? PortMessage)
    #expect(message.copy(with: nil) as? PortMessage === message && message.components == nil)
    #expect(port.isEqual(port) && !port.isEqual(Port()) && !port.isEqual(nil) && port.hash == port.hashValue)
    #expect(port.description == port.debugDescription && port.description.hasPrefix("<Port 0x"))
  }
}

/// A delegate that does not implement the method.
private final class Silent: PortDelegate {}
