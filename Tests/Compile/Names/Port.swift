// SPDX-License-Identifier: Apache-2.0

// Foundation's port API on Linux. The sections are compiled with Foundation alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Port: in a loop
func keepAlive() {
  let port: Port = Port()
  RunLoop.current.add(port, forMode: .default)
  port.schedule(in: .current, forMode: .common)
  port.remove(from: RunLoop.current, forMode: RunLoop.Mode.common)
  RunLoop.current.remove(port, forMode: .default)
}

// MARK: Port: its members
func members(of port: Port) -> Any {
  if port.isValid { port.invalidate() }
  print(port.reservedSpaceLength)
  let copy: Any = port.copy(with: nil)
  let copying: any NSCopying = port
  return [copy, port.copy(with: NSZone?.none), copying]
}

// MARK: Port: a delegate
final class Receiver: PortDelegate {
  func handle(_ message: PortMessage) { print(message.msgid) }
}

func attach(_ receiver: Receiver, to port: Port) -> Bool {
  port.setDelegate(receiver)
  defer { port.setDelegate(nil) }
  let delegate: (any PortDelegate)? = port.delegate()
  delegate?.handle(PortMessage(sendPort: nil, receivePort: port, components: nil))
  return delegate === receiver
}

// MARK: Port: sending
func send(to port: Port, from reply: Port) -> Bool {
  let parts: NSMutableArray = [NSData(data: Data([1, 2, 3]))]
  let first: Bool = port.send(before: Date(timeIntervalSinceNow: 1), components: parts, from: nil, reserved: 0)
  let reserved = port.reservedSpaceLength
  let second = port.send(before: .distantFuture, msgid: 7, components: nil, from: reply, reserved: reserved)
  return first && second
}

// MARK: Port: messages
func message(to port: Port, from reply: Port) -> Bool {
  let message = PortMessage(sendPort: port, receivePort: reply, components: [NSData()])
  message.msgid = 7
  let number: UInt32 = message.msgid
  let parts: [AnyObject]? = message.components
  let ends: [Port?] = [message.sendPort, message.receivePort]
  return message.send(before: Date()) || number == 0 || parts == nil || ends.isEmpty
}

// MARK: Port: a copy of a message
func copy(of message: PortMessage) -> Any { message.copy(with: nil) }

// MARK: Port: messages are objects of Foundation
func object(_ message: PortMessage) -> NSObject & NSCopying { message }

// MARK: Port: its end
func observeEnd(of port: Port) {
  let name: Notification.Name = Port.didBecomeInvalidNotification
  _ = NotificationCenter.default.addObserver(forName: name, object: port, queue: nil) { _ in }
}

// MARK: Port: identity
func compare(_ port: Port, _ other: Port) -> Bool {
  port == other || port === other || Set([port, other]).count == [port: 1, other: 2].count
}

// MARK: Port: what is printed of it
func portText(_ port: Port) -> String { "\(port) \(port.description) \(port.debugDescription)" }

// MARK: Port: as an object
func portObject(_ port: Port) -> Bool { port.isEqual(port) && port.hash == port.hashValue }

// MARK: Port: invalidated by another thread
func invalidate(_ port: Port, on queue: DispatchQueue) {
  queue.async { port.invalidate() }
}

// MARK: Port: a subclass
// Porting: `class Signal: Port`
final class Signal: Port {
  private var handler: (() -> Void)?
  private var isOpen = true

  override var isValid: Bool { isOpen }
  override var reservedSpaceLength: Int { 16 }
  override func invalidate() { isOpen = false }
  override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { print(mode.rawValue) }
  override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) { print(mode.rawValue) }
}

// MARK: Port: a subclass that says again that it is Sendable
final class Echo: Port, @unchecked Sendable {
  private var handler: (() -> Void)?

  override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    super.schedule(in: runLoop, forMode: mode)
    handler?()
  }
}

// MARK: Port: a subclass that says how it is described and compared
final class Named: Port, @unchecked Sendable {
  private var label = "named"

  override var description: String { label }
  override var hash: Int { label.hashValue }
  override func isEqual(_ object: Any?) -> Bool { (object as? Named)?.label == label }
}

// MARK: Port: a subclass with members of the names that ours has beside Foundation's
final class Mailbox: Port, @unchecked Sendable {
  var queueLimit: Int? = 3
  var overflowPolicy = "oldest first"
  var droppedMessageCount: [String] = []
  var waitingMessageCount: Set<Int> = []
}

func mailboxPath() -> ReferenceWritableKeyPath<Mailbox, Int?> { \.queueLimit }

func fill(_ mailbox: Mailbox) -> [String] {
  mailbox.queueLimit = nil
  mailbox.waitingMessageCount.insert(mailbox[keyPath: mailboxPath()] ?? 0)
  mailbox.droppedMessageCount.append(mailbox.overflowPolicy)
  return mailbox.droppedMessageCount
}
