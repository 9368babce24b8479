// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore

/// A connection to a local port.
///
/// One thread at a time serves it, so that its messages are received in order, in whatever loop. In the port's epoll set it is
/// armed for what it waits for. Whoever finds it being served disarms it, so as not to be woken again and again, and it is
/// armed when it has been served. A connection whose messages are not finished wakes nobody.
final class LocalClient: @unchecked Sendable {
  // Sendable: `state` is guarded by the lock, `reader` by the role of the serving thread.
  let key: UInt64
  let socket: MessagePort.Descriptor
  let credentials: MessagePort.Credentials
  /// Whether it is another user's.
  let isForeign: Bool
  /// Until when it has to have said something.
  let silenceEnd: SuspendingClock.Instant?
  private let account: MessageAccount
  private let limits: MessagePort.Limits
  private let epoll: MessagePort.Descriptor
  private let counters: LocalCounters
  private let lock = ProcessLock()
  // Not checked for exclusive access: the lock guards it, and nothing that is called under it calls back.
  @exclusivity(unchecked) private var state = LocalClientState()
  private let reader = MessageReader()

  // The serving thread's.

  /// Whether the sender had nothing more to say when it was last asked after a request: it waits for the reply.
  @exclusivity(unchecked) private var asksOneByOne = false
  /// How many turns have ended with their first request because of that.
  @exclusivity(unchecked) private var shortTurns = 0

  init(
    _ key: UInt64, _ socket: MessagePort.Descriptor, _ credentials: MessagePort.Credentials, of port: MessagePort.Local,
    _ account: MessageAccount, silenceEnd: SuspendingClock.Instant?
  ) {
    self.key = key
    self.account = account
    self.silenceEnd = silenceEnd
    isForeign = !credentials.isSameUser
    self.socket = socket
    self.credentials = credentials
    limits = port.limits
    epoll = port.epoll
    counters = port.counters
  }

  /// Enters the port's epoll set.
  func enter() throws(SystemError) {
    _ = try SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_ADD, socket.number, Self.reading, key)
    }
  }

  // A connection that may not be read is armed for one event at a time: a hang-up is always told, and would be told for ever.

  private static let once = EPOLLONESHOT.rawValue
  private static let reading = EPOLLIN.rawValue | EPOLLRDHUP.rawValue
  /// Tells of every packet that the receiver takes, whether there is room for another or not.
  private static let takenByReceiver = EPOLLOUT.rawValue | EPOLLET.rawValue

  /// Arms the connection for what it waits for; with the lock, not while it is served.
  private func arm() {
    guard !state.isClosed, !state.isServing else { return }
    guard !state.isHeldBack else { return arm(Self.takenByReceiver) }
    let mayRead = self.mayRead
    // Nothing new can be told of it: it is armed when it may be read.
    guard mayRead || !state.isHungUp else { return disarm() }
    let mustWrite = state.waiting > 0 || (state.confirmed < state.received && !state.confirmsLater)
    arm((mayRead ? Self.reading : Self.once) | (mustWrite ? EPOLLOUT.rawValue | Self.once : 0))
  }

  /// Whether one more message may be read; with the lock.
  private var mayRead: Bool { state.mayRead(limit: limits.unfinishedMessages, bytes: limits.connectionBytes) }

  private func disarm() { if state.armed != nil { arm(Self.once) } }

  private func arm(_ events: UInt32) {
    guard events != state.armed else { return }
    let answer = try? SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_MOD, socket.number, events, key)
    }
    state.armed = answer == nil ? nil : events
  }

  /// How a turn of a connection has ended.
  private enum Turn {
    /// There was nothing.
    case isEmpty
    case hasRead
    /// It has ended with its last message, and there may be more.
    case isFull
    /// The connection is over.
    case isOver
  }

  /// How many messages are a turn's.
  private static let turn = 32
  /// After how many bytes a turn ends, so that others have theirs.
  private static let turnBytes = 1 << 20
  /// How many messages are confirmed at once if more and more lie there.
  private static let confirmations = 256
  /// After how many short turns it is asked again whether there is more.
  private static let shortTurnLimit = 16

  /// What has come of serving a connection.
  enum Service {
    case isDone
    /// There was nothing, or it cannot be served now.
    case hadNothing
    case isOver
  }

  /// Sends and reads what can be, and delivers it.
  ///
  /// A loop's thread. At most so many messages as are a turn's.
  func serve(_ events: UInt32, _ deliver: (MessagePort.Request) -> Void) -> Service {
    lock.lock()
    if let armed = state.armed, armed & Self.once != 0 { state.armed = nil }
    guard !state.isServing, !state.isClosed else {
      // Somebody else serves it, and arms it then.
      if state.isServing { disarm() }
      lock.unlock()
      return .hadNothing
    }
    state.isServing = true
    if events & EPOLLHUP.rawValue != 0 { state.isHungUp = true }
    if events & EPOLLOUT.rawValue != 0 || state.isHeldBack { sendWaiting() }
    lock.unlock()
    return finishServing(deliver)
  }

  /// The same, where the port's epoll set was not asked whether there is anything.
  func serveUnasked(_ deliver: (MessagePort.Request) -> Void) -> Service {
    lock.lock()
    // What else it is armed for only the set can tell.
    guard !state.isServing, !state.isClosed, state.armed == Self.reading else {
      lock.unlock()
      return .hadNothing
    }
    state.isServing = true
    lock.unlock()
    return finishServing(deliver)
  }

  private func finishServing(_ deliver: (MessagePort.Request) -> Void) -> Service {
    let turn = readTurn(deliver)
    // With the next turn's, if that is certain to come and the sender does not wait for it.
    let mayConfirmLater = turn == .isFull && SystemCall.isReadable(socket)
    lock.lock()
    if turn != .isOver {
      state.confirmsLater =
        mayConfirmLater && state.received - state.confirmed < Self.confirmations && mayRead
      if !state.confirmsLater { sendConfirmation() }
    }
    state.isServing = false
    if turn != .isOver { arm() }
    lock.unlock()
    switch turn {
    case .isEmpty: return .hadNothing
    case .hasRead, .isFull: return .isDone
    case .isOver: return .isOver
    }
  }

  private func readTurn(_ deliver: (MessagePort.Request) -> Void) -> Turn {
    var bytes = 0
    for index in 0..<Self.turn {
      guard bytes < Self.turnBytes, lock.withLock({ mayRead }) else { return .hasRead }
      switch readOne(deliver, &bytes) {
      case .nothing:
        if index == 1 {
          asksOneByOne = true
          shortTurns = 0
        }
        return index == 0 ? .isEmpty : .hasRead
      case .ended: return .isOver
      case .request where index == 0 && asksOneByOne && shortTurns < Self.shortTurnLimit:
        // Another read would find nothing; if it would, the loop is told.
        shortTurns += 1
        return .hasRead
      case .request, .message: if index == 1 { asksOneByOne = false }
      }
    }
    return .isFull
  }

  private enum Reading {
    case nothing
    case request
    case message
    case ended
  }

  /// Reads one message and delivers it.
  private func readOne(_ deliver: (MessagePort.Request) -> Void, _ turnBytes: inout Int) -> Reading {
    let incoming: MessageReader.Incoming
    var admitted = MessageAccount.Amount()
    do {
      if isForeign, let refusal = try reader.refusal(on: socket, admitsDescriptors: admitsDescriptors) {
        return end(refusal)
      }
      incoming = try reader.next(on: socket, limit: limits.messageSize) { frame in
        let amount = MessageAccount.Amount(incoming: frame.length, descriptors: frame.descriptorCount)
        guard account.take(amount) else { return .quotaExceeded }
        admitted = amount
        return nil
      }
    } catch {
      counters.change { $0.failedReads += 1 }
      return .ended
    }
    turnBytes += admitted.incoming
    if case .message = incoming {
    } else {
      account.release(admitted)
      admitted = .init()
    }
    switch incoming {
    case .nothing: return .nothing
    case .ended: return .ended
    case .malformed: break
    case .refused(let frame, let reason):
      guard frame.kind == .request || frame.kind == .oneWay else { break }
      counters.change {
        switch reason {
        case .tooLarge: $0.oversized += 1
        case .quotaExceeded: $0.overQuota += 1
        default: $0.lackingResources += 1
        }
      }
      lock.withLock { send(MessageContent(.refusal, id: reason.rawValue, token: frame.token), []) }
      return .message
    case .message(let frame, let bytes, let descriptors):
      guard frame.kind == .request || frame.kind == .oneWay else { break }
      lock.withLock {
        state.unfinished += 1
        state.unfinishedBytes += bytes.count
        state.hasSpoken = true
      }
      for descriptor in descriptors { descriptor.charge(MessageCharge(.init(descriptors: 1), to: account)) }
      counters.change { $0.received += 1 }
      deliver(MessagePort.Request(frame, bytes, descriptors, from: self))
      return frame.kind == .request ? .request : .message
    }
    account.release(admitted)
    counters.change { $0.malformed += 1 }
    return .ended
  }

  /// Whether another user's message may bring what it says that it brings.
  private func admitsDescriptors(_ frame: MessageFrame) -> Bool {
    frame.descriptorCount == 0 || limits.otherUsers.takesDescriptors
  }

  /// Ends a connection whose next packet is not read because of its descriptors.
  private func end(_ incoming: MessageReader.Incoming) -> Reading {
    switch incoming {
    case .nothing: return .nothing
    case .refused(_, let reason):
      counters.change { $0.untrusted += 1 }
      lock.withLock { send(MessageContent(.refusal, id: reason.rawValue, token: 0), []) }
    default: counters.change { $0.malformed += 1 }
    }
    return .ended
  }

  /// Whether it has said nothing until its time was over.
  func isSilent(at now: SuspendingClock.Instant) -> Bool {
    guard let silenceEnd, silenceEnd <= now else { return false }
    return lock.withLock { !state.hasSpoken }
  }

  /// Whether it still has to say something.
  var mustSpeak: Bool { silenceEnd != nil && lock.withLock { !state.hasSpoken && !state.isClosed } }
}

// What goes back. Any thread.
extension LocalClient {
  /// Answers a request of so many bytes.
  func answer(_ token: UInt64, _ size: Int, _ reply: MessagePort.Reply?) {
    // The parent answers its senders.
    guard !lock.isParents else { return }
    account.release(.init(incoming: size))
    lock.lock()
    state.unfinished -= 1
    state.unfinishedBytes -= size
    if state.isClosed {
      counters.change { $0.droppedReplies += 1 }
    } else {
      counters.change { $0.replies += 1 }
      if let reply { send(reply, token) } else { send(MessageContent(.noReply, token: token), []) }
      if !state.isClosed { arm() }
    }
    lock.unlock()
  }

  /// Tells the sender that a message of so many bytes is not taken.
  func refuse(_ token: UInt64, _ size: Int, _ reason: MessagePort.Refusal) {
    guard !lock.isParents else { return }
    account.release(.init(incoming: size))
    lock.lock()
    state.unfinished -= 1
    state.unfinishedBytes -= size
    send(MessageContent(.refusal, id: reason.rawValue, token: token), [])
    arm()
    lock.unlock()
  }

  /// Notes that a one-way message of so many bytes was received.
  func noteReceived(_ token: UInt64, _ size: Int) {
    guard !lock.isParents else { return }
    account.release(.init(incoming: size))
    lock.lock()
    state.unfinished -= 1
    state.unfinishedBytes -= size
    state.received = max(state.received, token)
    // While it is served, one confirmation is made for many.
    if !state.isServing {
      sendConfirmation()
      arm()
    }
    lock.unlock()
  }

  /// Sends a reply, now or when there is room, or says why there is none; with the lock, which it gives up for a while.
  private func send(_ reply: MessagePort.Reply, _ token: UInt64) {
    func refuse(_ reason: MessagePort.Refusal) {
      send(MessageContent(.refusal, id: reason.rawValue, token: token), [])
    }
    guard reply.bytes.count <= limits.messageSize else { return refuse(.tooLarge) }
    guard reply.descriptors.count <= MessageFrame.descriptorLimit else { return refuse(.descriptorsLost) }
    let numbers = reply.descriptors.isEmpty ? [] : reply.descriptors.map(\.number)
    var content = MessageContent(.reply, id: 0, token: token, bytes: reply.bytes, descriptors: numbers)
    // What fits into the packets of a socket is bounded with that; a reply that is sent at once need not be charged.
    if !isCharged(content), state.waiting == 0, sendNow(content) { return }
    let isTooMuch = state.waiting > 0 && content.amount.outgoing > limits.connectionBytes - state.waitingBytes
    guard !isTooMuch, account.take(content.amount) else {
      counters.change { $0.overQuota += 1 }
      return refuse(.quotaExceeded)
    }
    if content.frame.isOutOfLine, state.waiting == 0, account.maySend(content.amount, on: key) {
      // Copying takes its time.
      lock.unlock()
      let isReady = (try? content.prepare()) != nil
      lock.lock()
      guard isReady, !state.isClosed else {
        account.release(content.amount)
        if state.isClosed { return counters.change { $0.droppedReplies += 1 } }
        return refuse(.noResources)
      }
    }
    if state.waiting == 0, sendNow(content) {
      if !isCharged(content) { account.release(content.amount) }
      return
    }
    // Memory is made again when there is room: it costs more than bytes that wait.
    content.forgetMemory()
    state.append(content, reply.descriptors)
  }

  /// Whether a reply stays charged until its receiver has taken it.
  private func isCharged(_ content: MessageContent) -> Bool {
    content.frame.kind == .reply && (isForeign || content.frame.carriedDescriptors > 0)
  }

  /// Sends now, or when there is room; with the lock.
  private func send(_ content: MessageContent, _ owners: [MessagePort.Descriptor]) {
    guard !state.isClosed else { return }
    if state.waiting > 0 { return state.append(content, owners) }
    if !sendNow(content) { state.append(content, owners) }
  }

  /// Sends; false, if there is no room, or if the receiver has much to take before: with the lock.
  ///
  /// If the other end is gone, whoever reads is told of it soon, and what there was to send is dropped.
  private func sendNow(_ message: MessageContent) -> Bool {
    var content = message
    let isCharged = isCharged(content)
    state.isHeldBack = isCharged && !account.maySend(content.amount, on: key)
    guard !state.isHeldBack else { return false }
    do {
      try content.prepare()
      try content.send(on: socket)
      if isCharged {
        let bytes = MessageFrame.size + (content.frame.isOutOfLine ? 0 : content.frame.length)
        account.noteSent(content.amount, bytes: bytes, on: key, socket)
      }
      return true
    } catch {
      switch error.number {
      case EAGAIN: return false
      case EPIPE, ECONNRESET, ENOTCONN:
        if isCharged { account.release(content.amount) }
        return true
      default: break
      }
      if isCharged { account.release(content.amount) }
      counters.change { $0.failedSends += 1 }
      // The sender is told, with as little as can be sent.
      let reason = MessagePort.Refusal.noResources.rawValue
      do {
        try MessageContent(.refusal, id: reason, token: content.frame.token).send(on: socket)
      } catch {
        // Who cannot be told why must not wait for it: the connection ends.
        _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
      }
      return true
    }
  }

  /// Sends what waits, as far as there is room; with the lock.
  private func sendWaiting() {
    while let next = state.next {
      guard sendNow(next) else { return }
      // A charge that goes on is noted with what was sent.
      if next.frame.kind == .reply, !isCharged(next) { account.release(next.amount) }
      _ = state.removeNext()
    }
    state.isHeldBack = false
    sendConfirmation()
  }

  /// Confirms what was received; with the lock.
  private func sendConfirmation() {
    guard state.waiting == 0, state.confirmed < state.received, !state.isClosed else { return }
    if sendNow(MessageContent(.confirmation, token: state.received)) { state.confirmed = state.received }
  }

  /// Ends the connection, with what can still be said; again: nothing.
  func close() {
    lock.lock()
    defer { lock.unlock() }
    guard !state.isClosed else { return }
    sendWaiting()
    sendConfirmation()
    counters.change { $0.droppedReplies += state.waiting }
    for content in state.outgoing[state.firstOutgoing...] where content.frame.kind == .reply {
      account.release(content.amount)
    }
    account.noteReading(of: key)
    state.isClosed = true
    state.isHeldBack = false
    state.waitingBytes = 0
    state.outgoing = []
    state.outgoingOwners = []
    state.firstOutgoing = 0
    // The descriptor closes with the last who uses it, which may be a request that somebody keeps.
    _ = try? SystemCall.epollControl.make { crl_epoll_control(epoll.number, EPOLL_CTL_DEL, socket.number, 0, 0) }
    _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
  }
}
