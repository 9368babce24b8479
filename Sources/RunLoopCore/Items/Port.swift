// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// An endpoint that receives messages, keeps a loop alive and wakes it when a message is sent (version 1).
///
/// A port can be in any number of modes of any number of loops, and any thread can send to it. Each message is
/// received once, by the first loop that takes it. At a port's turn, a pass receives the messages that are queued, up
/// to 64; a run that returns after a source receives one. A subclass with its own sources overrides
/// ``schedule(in:forMode:)`` and ``remove(from:forMode:)``.
///
/// A loop retains the ports that were added to it, and releases a port when it is invalidated.
///
/// The corresponding Foundation class is `Port`.
open class Port: @unchecked Sendable, Hashable {
  // Sendable: the lock guards the variables, and the reference guards the handler. A subclass guards its own state.

  fileprivate let lock = Lock()
  let reference = HandlerReference()
  /// The port's modes and loops, guarded by the lock.
  final var registrations = PortRegistrations()
  fileprivate var queue: PortQueue
  /// The number of queued messages.
  ///
  /// It is written with the lock held, and loops read it without the lock. Relaxed ordering suffices because it only
  /// limits how many messages to take, and each is taken with the lock held.
  private let messageCount = Atomic<Int>(0)
  /// A futex word that changes, with the lock held, whenever senders waiting for room must check again.
  ///
  /// Relaxed ordering suffices because the lock orders it, and the kernel compares it again before a sender sleeps.
  private let roomWord = Atomic<UInt32>(0)
  let invalidationObservers = InvalidationObservers()
  private var substitute: (any PortReceiver)?
  private var handler: (@Sendable (Port, Message) -> Void)?

  let limit: Int
  let policy: OverflowPolicy

  /// Creates a port that is in no mode, queues up to 1024 messages and passes them to ``receive(_:)``.
  public init() {
    limit = 1024
    self.policy = .wait
    queue = PortQueue(limit: 1024, policy: .wait)
  }

  /// Creates a port that is in no mode and whose messages are passed to ``receive(_:)``.
  ///
  /// - Parameters:
  ///   - queueLimit: The maximum number of queued messages, at least 1.
  ///   - policy: The handling of a message if the queue is full. Defaults to ``OverflowPolicy/wait``.
  public init(queueLimit: Int, whenFull policy: OverflowPolicy = .wait) {
    limit = max(1, queueLimit)
    self.policy = policy
    queue = PortQueue(limit: max(1, queueLimit), policy: policy)
  }

  /// Creates a port that is in no mode.
  ///
  /// - Parameters:
  ///   - queueLimit: The maximum number of queued messages, at least 1. Defaults to 1024.
  ///   - policy: The handling of a message if the queue is full. Defaults to ``OverflowPolicy/wait``.
  ///   - handler: Called on a loop's thread for each message. It is released once the port is invalid and no call-out
  ///     is running.
  public init(
    queueLimit: Int = 1024, whenFull policy: OverflowPolicy = .wait,
    handler: @escaping @Sendable (Port, Message) -> Void
  ) {
    limit = max(1, queueLimit)
    self.policy = policy
    queue = PortQueue(limit: max(1, queueLimit), policy: policy)
    self.handler = handler
  }

  /// Whether the port can still be added, sent to and received from.
  ///
  /// Initially `true`. Can be read from any thread. The corresponding Foundation property is `isValid`.
  open var isValid: Bool { reference.isOpen }

  /// The number of bytes that a message of this port needs in addition to its components, by default 0.
  ///
  /// The corresponding Foundation property is `reservedSpaceLength`.
  open var reservedSpaceLength: Int { 0 }

  /// Receives a message on a loop's thread.
  ///
  /// Passes the message to the port's handler, if there is one. A message without a receiver counts as dropped.
  open func receive(_ message: Message) {
    guard hold() else { return noteDropped() }
    if let handler {
      handler(self, message)
    } else if !(receiver?.receive(message, at: self) ?? false) {
      noteDropped()
    }
    letGo()
  }

  /// Adds the port to a mode of a loop.
  ///
  /// Called by ``RunLoop/add(_:forMode:)-(Port,_)``, once for each mode. A subclass can add its own sources instead.
  open func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
    loop.join(self, mode)
  }

  /// Removes the port from a mode of a loop.
  ///
  /// Called by ``RunLoop/remove(_:forMode:)``.
  open func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
    loop.part(self, mode)
    loop.disown(self, mode)
  }

  /// Closes the port permanently, and notifies its senders and observers.
  ///
  /// The port is removed from all modes, so that the loops release it, and its queued messages are dropped. Senders,
  /// including those that wait for room, receive ``PortError/invalid``. Then ``didBecomeInvalid()`` and the observers
  /// are called on the calling thread. Can be called from any thread. Calling it again has no effect. The
  /// corresponding Foundation method is `invalidate()`.
  open func invalidate() {
    var remains = MoveQueue<Message>()
    lock.lock()
    let closing = reference.close()
    guard closing != .already else { return lock.unlock() }
    let loops = registrations.loops
    queue.close(&remains)
    messageCount.store(0, ordering: .relaxed)
    let wakesSenders = callSendersBack()
    lock.unlock()
    if wakesSenders { roomWord.futexWake(.max) }
    for loop in loops { loop.expel(self) }
    if closing == .release { releaseHandler() }
    // Dropped before the notifications, so that the messages' contents have been released by then.
    while !remains.isEmpty { _ = remains.takeFirst() }
    didBecomeInvalid()
    invalidationObservers.announce(self)
    LoadHook.portBecameInvalid.call(self)
  }

  /// Called once, when the port has become invalid, on the thread that invalidated it.
  ///
  /// At this point the port is in no mode, its queue is empty, and no lock is held. Subclasses can override this
  /// method; the default implementation does nothing.
  open func didBecomeInvalid() {}

  /// Queues a message for a loop that runs a mode containing this port, and wakes the loop if it sleeps.
  ///
  /// If no loop contains the port, the message stays queued until one does. Messages from one sender are received in
  /// order. If the queue is full, ``PortMembers/overflowPolicy`` decides what happens. A thread that waits for room in
  /// a port from which only its own loop receives waits until the deadline. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - message: The message to send.
  ///   - deadline: How long to wait for room in a full queue, on the monotonic clock. If `nil`, which is the default,
  ///     the call does not wait.
  /// - Throws: ``PortError/invalid``, ``PortError/queueFull(limit:)`` or ``PortError/timedOut(limit:)``. The message
  ///   was then not sent.
  /// - Complexity: O(n) in the number of the port's modes, independent of the number of messages.
  @inline(never)
  open func send(_ message: Message, deadline: SuspendingClock.Instant? = nil) throws(PortError) {
    let site = crl_call_site()
    lock.lock()
    switch queue.offer(message) {
    case .taken: announce(site)
    case .replaces(let oldest):
      announce(site)
      // Released here, after the lock.
      withExtendedLifetime(oldest) {}
    case .closed:
      lock.unlock()
      throw .invalid
    case .full(let mayWait):
      guard mayWait, let deadline else {
        lock.unlock()
        throw .queueFull(limit: limit)
      }
      try sendInTurn(message, deadline: Tick(deadline), site)
    }
  }

  /// Returns whether two ports are equal according to ``isEqual(_:)``.
  public static func == (left: Port, right: Port) -> Bool { left.isEqual(right) }

  /// Hashes the value of ``hash``.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A human-readable description of the port's state.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `NSObject.description`.
  open var description: String { debugDescription }

  /// The port's hash value, which is based on its identity.
  ///
  /// A subclass that overrides ``isEqual(_:)`` must override this too: equal objects must have equal hash values. The
  /// corresponding Foundation property is `NSObject.hash`.
  open var hash: Int { ObjectIdentifier(self).hashValue }

  /// The value of ``hash``.
  public var hashValue: Int { hash }

  /// Returns whether `object` is this port.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  open func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}

/// Members of a port that Foundation's `Port` does not have.
///
/// A subclass may declare members of the same names; code that uses it as a ``Port`` still calls these. Every port
/// conforms.
public protocol PortMembers: Port {}

extension Port: PortMembers {}

extension PortMembers {
  /// The number of messages that can be queued before a sender has to wait, by default 1024.
  public var queueLimit: Int { limit }
  /// The handling of a message if the queue is full, ``Port/OverflowPolicy/wait`` by default.
  public var overflowPolicy: Port.OverflowPolicy { policy }
  /// The number of messages, initially 0, that were dropped before any receiver took them.
  ///
  /// Dropped messages are the oldest ones of a full queue under ``Port/OverflowPolicy/dropOldest``, those still queued
  /// when the port was invalidated, and those that arrived at a port without a receiver. Can be read from any thread.
  public var droppedMessageCount: Int { lock.withLock { queue.dropped } }

  /// The number of messages queued for receipt.
  ///
  /// Can be read from any thread.
  public var waitingMessageCount: Int { lock.withLock { queue.count } }
}

// Sending and receiving.
extension Port {
  /// Notifies the loops of a queued message; requires the lock, which it releases.
  @inline(__always)
  private func announce(_ site: UInt64) {
    messageCount.store(queue.count, ordering: .relaxed)
    Origin.note(self, tag: Origin.tag(queue.lastNumber), site: site)
    for membership in registrations.memberships.all { membership.loop.noteReady(membership) }
    let loops = registrations.memberships.loops
    lock.unlock()
    for loop in loops { loop.post() }
  }

  /// Waits for room and then queues the message; requires the lock, which it releases.
  @inline(never)
  private func sendInTurn(_ message: Message, deadline: Tick, _ site: UInt64) throws(PortError) {
    while SystemWaiter.shared.now < deadline {
      queue.beginWait()
      let seen = roomWord.load(ordering: .relaxed)
      lock.unlock()
      roomWord.futexWait(while: seen, until: deadline)
      lock.lock()
      queue.endWait()
      switch queue.offer(message) {
      case .taken, .replaces: return announce(site)
      case .full: continue
      case .closed:
        lock.unlock()
        throw .invalid
      }
    }
    lock.unlock()
    throw .timedOut(limit: limit)
  }

  /// Whether messages are queued, and how many.
  ///
  /// Another loop may take them first.
  final var hasMessage: Bool { messages > 0 }
  final var messages: Int { messageCount.load(ordering: .relaxed) }

  /// Removes and returns the first message; must be called on the loop's thread.
  final func takeMessage() -> (message: Message, number: UInt64)? {
    lock.lock()
    let taken = queue.takeFirst()
    messageCount.store(queue.count, ordering: .relaxed)
    let wakesSender = taken != nil && callSendersBack()
    lock.unlock()
    // One free slot wakes one sender, because a woken sender checks for room before it checks the deadline.
    if wakesSender { roomWord.futexWake() }
    return taken
  }

  /// Makes every waiting sender check again, and returns whether one may have to be woken; requires the lock.
  private func callSendersBack() -> Bool {
    guard queue.waiting > 0 else { return false }
    roomWord.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// Wrapped in the same way as ``Block``.
  private struct Call {
    let body: @Sendable (Port, Message) -> Void
  }

  /// The address of the user's function (used only on the loop's thread, which is about to call it).
  ///
  /// Not written with `map`, whose closure would be called through a thunk.
  final var code: UInt64 {
    guard let handler else { return 0 }
    return ClosureCode.first(of: Call(body: handler))
  }

  private func noteDropped() { lock.withLock { queue.noteDropped() } }

  private func releaseHandler() { _ = handler.take() }

  /// The receiver of messages for a port without a handler, `nil` by default (thread-safe).
  package final var receiver: (any PortReceiver)? {
    get { lock.withLock { substitute } }
    set {
      // The previous receiver is released after the lock.
      let before = lock.withLock { exchange(&substitute, with: newValue) }
      withExtendedLifetime(before) {}
    }
  }
}

// The locking used when items are added and removed.
extension Port {
  final func lockItem() { lock.lock() }
  final func unlockItem() { lock.unlock() }
  final func letGo() { if reference.leave() { releaseHandler() } }
}

extension Port: CustomDebugStringConvertible {
  /// A description of the port's state, formatted like Core Foundation's.
  public var debugDescription: String {
    "<\(type(of: self)) \(addressDescription(self))>{valid = \(yesOrNo(isValid)), version = 1, "
      + "messages = \(waitingMessageCount), dropped = \(droppedMessageCount), "
      + "\(callOutDescription(heldCode { code }))}"
  }
}

/// An object that receives the messages of a port without a handler.
///
/// A higher layer implements delegates with it.
package protocol PortReceiver: AnyObject, Sendable {
  /// Receives a message on a loop's thread, and returns `false` if it cannot be delivered.
  func receive(_ message: Port.Message, at port: Port) -> Bool
}
