import Synchronization

/// An end point that keeps a loop alive and wakes it when a message is sent (version 1).
///
/// A port may be in any number of modes of any number of loops; each message is received once, by the first of them that
/// gets to it, one message in a pass. A subclass that brings its own sources overrides ``schedule(in:forMode:)`` and
/// ``remove(from:forMode:)``.
///
/// The corresponding Foundation class is `Port`.
open class Port: @unchecked Sendable, Hashable {
  // Sendable: the variables are guarded by the lock, the handler by the lease. A subclass guards its own.

  /// What a port carries.
  public struct Message: Sendable, Hashable {
    /// The sender's number for the kind of message.
    public var id: UInt32
    /// The message's parts, in order.
    public var components: [[UInt8]]

    /// Makes a message.
    public init(id: UInt32 = 0, components: [[UInt8]] = []) {
      self.id = id
      self.components = components
    }
  }

  /// How many messages may wait before a sender has to.
  public let queueLimit: Int

  private let lock = Lock()
  private let lease = Lease()
  private var memberships = Memberships<Port>()
  private var messages = MoveQueue<Message>()
  /// How many messages wait.
  ///
  /// Written under the lock; a loop looks at it without.
  private let messageCount = Atomic<Int>(0)
  /// Counts the messages that were taken, for senders that wait for room.
  private let taken = Atomic<UInt32>(0)
  private let waitingSenders = Atomic<Int>(0)
  private var handler: (@Sendable (Port, Message) -> Void)?

  /// Makes a port that is in no mode and whose messages go to ``receive(_:)``.
  public init() {
    self.queueLimit = 1024
    self.handler = nil
  }

  /// Makes a port that is in no mode.
  ///
  /// - Parameters:
  ///   - queueLimit: How many messages may wait; at least one.
  ///   - handler: Called on a loop's thread for each message. It is released when the port is invalid and no call-out runs.
  public init(queueLimit: Int = 1024, handler: @escaping @Sendable (Port, Message) -> Void) {
    self.queueLimit = max(1, queueLimit)
    self.handler = handler
  }

  /// Whether the port can still be added, sent to and received from.
  ///
  /// Any thread.
  open var isValid: Bool { lease.isOpen }

  /// The bytes that a message of this port needs beside its components.
  ///
  /// The corresponding Foundation property is `reservedSpaceLength`.
  open var reservedSpaceLength: Int { 0 }

  /// Receives a message, on a loop's thread.
  ///
  /// The port's handler gets it, if there is one.
  open func receive(_ message: Message) {
    guard hold() else { return }
    handler?(self, message)
    letGo()
  }

  /// Puts the port into a mode of a loop.
  ///
  /// ``RunLoop/add(_:forMode:)-(Port,_)`` calls it; a subclass may add its own sources.
  open func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
    loop.join(self, mode)
  }

  /// Takes the port out of a mode of a loop.
  ///
  /// ``RunLoop/remove(_:forMode:)-(Port,_)`` calls it.
  open func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
    loop.part(self, mode)
  }

  /// Ends the port for good: it leaves all modes, its waiting messages are dropped, and senders get an error.
  ///
  /// Any thread; again: nothing. The corresponding Foundation method is `invalidate()`.
  open func invalidate() {
    lock.lock()
    let closing = lease.close()
    let loops = memberships.loops
    var dropped = MoveQueue<Message>()
    if closing != .already { swap(&dropped, &messages) }
    messageCount.store(messages.count, ordering: .relaxed)
    lock.unlock()
    guard closing != .already else { return }
    for loop in loops { loop.expel(self) }
    noteTaken()
    if closing == .release { releaseHandler() }
  }

  /// Leaves a message for a loop that has this port in a mode that it runs, and wakes it if it sleeps.
  ///
  /// Without a loop the message waits until there is one. Any thread.
  ///
  /// - Parameters:
  ///   - message: What the receiver gets.
  ///   - deadline: How long to wait for room in a full queue, by the monotonic clock. Nil: do not wait.
  /// - Throws: ``PortError/invalid``, ``PortError/queueFull(limit:)`` or ``PortError/timedOut(limit:)``; the message was not sent.
  public func send(_ message: Message, deadline: SuspendingClock.Instant? = nil) throws(PortError) {
    waitingSenders.wrappingAdd(1, ordering: .sequentiallyConsistent)
    defer { waitingSenders.wrappingSubtract(1, ordering: .relaxed) }
    let limit = deadline.map(Tick.init)
    while true {
      let seen = taken.load(ordering: .sequentiallyConsistent)
      lock.lock()
      guard lease.isOpen else {
        lock.unlock()
        throw .invalid
      }
      if messages.count < queueLimit {
        messages.append(message)
        messageCount.store(messages.count, ordering: .relaxed)
        for membership in memberships.all { membership.loop.noteReady(membership) }
        let loops = memberships.loops
        lock.unlock()
        for loop in loops where !loop.sabotage.contains(.portsSilent) { loop.post() }
        return
      }
      lock.unlock()
      guard let limit else { throw .queueFull(limit: queueLimit) }
      guard SystemWaiter.shared.now < limit else { throw .timedOut(limit: queueLimit) }
      taken.futexWait(while: seen, until: limit)
    }
  }

  /// Whether both are the same.
  public static func == (left: Port, right: Port) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Why a port did not take a message.
public enum PortError: Error, Hashable, Sendable {
  /// The port has been invalidated.
  case invalid
  /// So many messages wait already, and the sender did not want to wait.
  case queueFull(limit: Int)
  /// So many messages waited until the deadline.
  case timedOut(limit: Int)
}

extension PortError: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .invalid: "the port is invalid"
    case .queueFull(let limit): "the port's queue is full: \(limit) messages wait"
    case .timedOut(let limit): "the port's queue stayed full until the deadline: \(limit) messages wait"
    }
  }
}

extension Port {
  /// Whether a message waits.
  ///
  /// Another loop may take it first.
  var hasMessage: Bool { messageCount.load(ordering: .relaxed) > 0 }

  /// Takes the first message.
  ///
  /// The loop's thread.
  func takeMessage() -> Message? {
    lock.lock()
    let message = messages.isEmpty ? nil : messages.takeFirst()
    messageCount.store(messages.count, ordering: .relaxed)
    lock.unlock()
    if message != nil { noteTaken() }
    return message
  }

  private func noteTaken() {
    taken.wrappingAdd(1, ordering: .sequentiallyConsistent)
    if waitingSenders.load(ordering: .sequentiallyConsistent) > 0 { taken.futexWake(.max) }
  }

  private func releaseHandler() {
    let released = handler
    handler = nil
    withExtendedLifetime(released) {}
  }
}

extension Port: RunLoopItem {
  func lockItem() { lock.lock() }
  func unlockItem() { lock.unlock() }
  func hold() -> Bool { lease.enter() }
  func letGo() { if lease.leave() { releaseHandler() } }
  var isOpen: Bool { lease.isOpen }
  func mayJoin(_ loop: RunLoop) -> Bool { true }
  func setCommon(_ isCommon: Bool, of loop: RunLoop) { memberships.setCommon(isCommon, of: loop) }
  func modes(of loop: RunLoop) -> ShortList<ModeState> { memberships.modes(of: loop) }
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { mode.ports[ObjectIdentifier(self)] != nil }

  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) {
    let membership = Membership(self, loop: loop, mode: mode)
    memberships.insert(membership)
    mode.insert(membership, isReady: !messages.isEmpty)
  }

  func leave(_ mode: ModeState, of loop: RunLoop) {
    guard let membership = mode.removePort(self) else { return }
    memberships.remove(membership)
  }
}

extension Port: CustomDebugStringConvertible {
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    let waiting = lock.withLock { messages.count }
    return "<\(type(of: self)) \(addressDescription(self))>{valid = \(yesOrNo(isValid)), version = 1, "
      + "messages = \(waiting)}"
  }
}
