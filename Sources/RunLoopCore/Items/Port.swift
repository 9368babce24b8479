// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// An end point that keeps a loop alive and wakes it when a message is sent (version 1).
///
/// A port may be in any number of modes of any number of loops, and any thread may send to it; each message is received
/// once, by the first loop that gets to it. A pass receives the messages that a port has when its turn comes, up to 64;
/// a run that returns after a source receives one. A subclass that brings its own sources overrides
/// ``schedule(in:forMode:)`` and ``remove(from:forMode:)``.
///
/// A loop keeps the ports that are in it alive, and lets a port go when it is invalidated.
///
/// The corresponding Foundation class is `Port`.
open class Port: @unchecked Sendable, Hashable {
  // Sendable: the variables are guarded by the lock, the handler by the reference. A subclass guards its own.

  fileprivate let lock = Lock()
  let reference = HandlerReference()
  /// The modes and loops of the port; guarded by the lock.
  final var registrations = PortRegistrations()
  fileprivate var queue: PortQueue
  /// How many messages wait.
  ///
  /// It is written under the lock; loops read it without the lock.
  ///
  /// Relaxed: it only says how many messages a turn may take, and each is taken under the lock.
  private let messageCount = Atomic<Int>(0)
  /// Changes whenever senders that wait for room have to look again; written under the lock.
  ///
  /// Relaxed: the lock orders it, and the kernel compares it again before a sender sleeps.
  private let roomWord = Atomic<UInt32>(0)
  /// The observers to notify when the port becomes invalid.
  let invalidationObservers = InvalidationObservers()
  private var substitute: (any PortReceiver)?
  private var handler: (@Sendable (Port, Message) -> Void)?

  let limit: Int
  let policy: OverflowPolicy

  /// Makes a port that is in no mode and whose messages go to ``receive(_:)``.
  public init() {
    limit = 1024
    self.policy = .wait
    queue = PortQueue(limit: 1024, policy: .wait)
  }

  /// Makes a port that is in no mode and whose messages go to ``receive(_:)``.
  ///
  /// - Parameters:
  ///   - queueLimit: How many messages may wait; at least one.
  ///   - policy: What happens to one more message.
  public init(queueLimit: Int, whenFull policy: OverflowPolicy = .wait) {
    limit = max(1, queueLimit)
    self.policy = policy
    queue = PortQueue(limit: max(1, queueLimit), policy: policy)
  }

  /// Makes a port that is in no mode.
  ///
  /// - Parameters:
  ///   - queueLimit: How many messages may wait; at least one.
  ///   - policy: What happens to one more message.
  ///   - handler: Called on a loop's thread for each message. It is released when the port is invalid and no call-out
  ///     runs.
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
  /// Can be used from any thread. The corresponding Foundation property is `isValid`.
  open var isValid: Bool { reference.isOpen }

  /// The bytes that a message of this port needs beside its components.
  ///
  /// The corresponding Foundation property is `reservedSpaceLength`.
  open var reservedSpaceLength: Int { 0 }

  /// Receives a message, on a loop's thread.
  ///
  /// The port's handler gets the message, if there is one. A message that nobody receives counts as dropped.
  open func receive(_ message: Message) {
    guard hold() else { return noteDropped() }
    if let handler {
      handler(self, message)
    } else if !(receiver?.receive(message, at: self) ?? false) {
      noteDropped()
    }
    letGo()
  }

  /// Puts the port into a mode of a loop.
  ///
  /// ``RunLoop/add(_:forMode:)-(Port,_)`` calls it, once for each mode; a subclass may add its own sources.
  open func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
    loop.join(self, mode)
  }

  /// Takes the port out of a mode of a loop.
  ///
  /// ``RunLoop/remove(_:forMode:)`` calls it.
  open func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
    loop.part(self, mode)
    loop.disown(self, mode)
  }

  /// Ends the port permanently, and notifies both ends.
  ///
  /// It leaves all modes, so that the loops release it. Its waiting messages are dropped. Senders, including those that
  /// wait for room, get ``PortError/invalid``. Then ``didBecomeInvalid()`` and the observers are called, on this
  /// thread. Can be called from any thread. Calling it again has no effect. The corresponding Foundation method is
  /// `invalidate()`.
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
    // Before anybody is notified, so that what the messages carried is released by then.
    while !remains.isEmpty { _ = remains.takeFirst() }
    didBecomeInvalid()
    invalidationObservers.announce(self)
    LoadHook.portBecameInvalid.call(self)
  }

  /// Called once, when the port has become invalid, on the thread that invalidated it.
  ///
  /// The port is in no mode any more, nothing waits in it, and no lock is held. Subclasses can override it; it does
  /// nothing here.
  open func didBecomeInvalid() {}

  /// Queues a message for a loop that has this port in a mode that it runs, and wakes the loop if it sleeps.
  ///
  /// Without a loop the message waits until there is one. The messages of one sender are received in their order. If
  /// the queue is full, the port's ``PortMembers/overflowPolicy`` decides what happens; a thread that waits for room in
  /// a port that only its own loop receives from waits until the deadline. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - message: The message for the receiver.
  ///   - deadline: Until when to wait for room in a full queue, by the monotonic clock. Nil means not to wait.
  /// - Throws: ``PortError/invalid``, ``PortError/queueFull(limit:)`` or ``PortError/timedOut(limit:)``; the message
  ///   was not sent.
  /// - Complexity: O(1) in the messages, O(n) in the port's modes.
  @inline(never)
  open func send(_ message: Message, deadline: SuspendingClock.Instant? = nil) throws(PortError) {
    let site = crl_call_site()
    lock.lock()
    switch queue.offer(message) {
    case .taken: announce(site)
    case .replaces(let oldest):
      announce(site)
      // Released here, outside the lock.
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

  /// Whether both are the same, as ``isEqual(_:)`` says.
  public static func == (left: Port, right: Port) -> Bool { left.isEqual(right) }

  /// Hashes ``hash``.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A human-readable description of the port's state.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `NSObject.description`.
  open var description: String { debugDescription }

  /// A number that is the same for the same port.
  ///
  /// A subclass that overrides ``isEqual(_:)`` has to override this too: equal objects have equal numbers. The
  /// corresponding Foundation property is `NSObject.hash`.
  open var hash: Int { ObjectIdentifier(self).hashValue }

  /// The same number as ``hash``.
  public var hashValue: Int { hash }

  /// Whether `object` is this port.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  open func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}

/// The members of a port that Foundation's port does not have.
///
/// A subclass may have members of the same names; code that uses the subclass as a ``Port`` still gets these. Every
/// port conforms.
public protocol PortMembers: Port {}

extension Port: PortMembers {}

extension PortMembers {
  /// How many messages may wait before a sender has to wait.
  public var queueLimit: Int { limit }
  /// What happens to a message when the queue is full.
  public var overflowPolicy: Port.OverflowPolicy { policy }
  /// How many messages, so far, nobody has received or will receive.
  ///
  /// These are the oldest messages of a full queue under ``Port/OverflowPolicy/dropOldest``, the messages that waited
  /// when the port was invalidated, and the messages that arrived at a port without a receiver. Can be used from any
  /// thread.
  public var droppedMessageCount: Int { lock.withLock { queue.dropped } }

  /// How many messages wait to be received.
  ///
  /// Can be used from any thread.
  public var waitingMessageCount: Int { lock.withLock { queue.count } }
}

// Sending and receiving.
extension Port {
  /// Notifies the loops of a message that was queued; called with the lock, which it releases.
  @inline(__always)
  private func announce(_ site: UInt64) {
    messageCount.store(queue.count, ordering: .relaxed)
    Origin.note(self, tag: Origin.tag(queue.lastNumber), site: site)
    for membership in registrations.memberships.all { membership.loop.noteReady(membership) }
    let loops = registrations.memberships.loops
    lock.unlock()
    for loop in loops { loop.post() }
  }

  /// Waits for room and then queues the message; called with the lock, which it releases.
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

  /// Whether a message waits, and how many.
  ///
  /// Another loop may take it first.
  final var hasMessage: Bool { messages > 0 }
  final var messages: Int { messageCount.load(ordering: .relaxed) }

  /// Takes the first message; called on the loop's thread.
  final func takeMessage() -> (message: Message, number: UInt64)? {
    lock.lock()
    let taken = queue.takeFirst()
    messageCount.store(queue.count, ordering: .relaxed)
    let wakesSender = taken != nil && callSendersBack()
    lock.unlock()
    // One free place wakes one sender: a sender that is woken looks for room before it looks at the time.
    if wakesSender { roomWord.futexWake() }
    return taken
  }

  /// Makes every waiting sender look again before it goes on waiting; returns true if one may have to be woken.
  ///
  /// Called under the lock.
  private func callSendersBack() -> Bool {
    guard queue.waiting > 0 else { return false }
    roomWord.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// Wrapped as ``Block`` is.
  private struct Call {
    let body: @Sendable (Port, Message) -> Void
  }

  /// The user's function; used on the loop's thread, which is about to call it.
  ///
  /// Not by `map`, whose closure would be called through a thunk.
  final var code: UInt64 {
    guard let handler else { return 0 }
    return ClosureCode.first(of: Call(body: handler))
  }

  private func noteDropped() { lock.withLock { queue.noteDropped() } }

  private func releaseHandler() { _ = handler.take() }

  /// The receiver of the messages of a port that has no handler; can be used from any thread.
  package final var receiver: (any PortReceiver)? {
    get { lock.withLock { substitute } }
    set {
      // The previous one is released outside the lock.
      let before = lock.withLock { exchange(&substitute, with: newValue) }
      withExtendedLifetime(before) {}
    }
  }
}

// The lock, for the code that adds and removes items.
extension Port {
  final func lockItem() { lock.lock() }
  final func unlockItem() { lock.unlock() }
  final func letGo() { if reference.leave() { releaseHandler() } }
}

extension Port: CustomDebugStringConvertible {
  /// The port's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    "<\(type(of: self)) \(addressDescription(self))>{valid = \(yesOrNo(isValid)), version = 1, "
      + "messages = \(waitingMessageCount), dropped = \(droppedMessageCount), "
      + "\(callOutDescription(heldCode { code }))}"
  }
}

/// Receives the messages of a port that has no handler.
///
/// A layer above has delegates; the port holds one receiver for it.
package protocol PortReceiver: AnyObject, Sendable {
  /// Receives a message, on a loop's thread; returns false if there is nobody to receive it.
  func receive(_ message: Port.Message, at port: Port) -> Bool
}
