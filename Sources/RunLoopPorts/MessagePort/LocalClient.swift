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
    _ key: UInt64, _ socket: MessagePort.Descriptor, _ credentials: MessagePort.Credentials, of port: MessagePort.Local
  ) {
    self.key = key
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

  /// Arms the connection for what it waits for; with the lock, not while it is served.
  private func arm() {
    guard !state.isClosed, !state.isServing else { return }
    let mayRead = state.mayRead(limit: limits.unfinishedMessages)
    // Nothing new can be told of it: it is armed when it may be read.
    guard mayRead || !state.isHungUp else { return disarm() }
    let mustWrite = state.waiting > 0 || (state.confirmed < state.received && !state.confirmsLater)
    arm((mayRead ? Self.reading : Self.once) | (mustWrite ? EPOLLOUT.rawValue | Self.once : 0))
  }

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
    if events & EPOLLOUT.rawValue != 0 { sendWaiting() }
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
        mayConfirmLater && state.received - state.confirmed < Self.confirmations
        && state.mayRead(limit: limits.unfinishedMessages)
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
    for index in 0..<Self.turn {
      guard lock.withLock({ state.mayRead(limit: limits.unfinishedMessages) }) else { return .hasRead }
      switch readOne(deliver) {
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
  private func readOne(_ deliver: (MessagePort.Request) -> Void) -> Reading {
    let incoming: MessageReader.Incoming
    do {
      incoming = try reader.next(on: socket, limit: limits.messageSize)
    } catch {
      counters.change { $0.failedReads += 1 }
      return .ended
    }
    switch incoming {
    case .nothing: return .nothing
    case .ended: return .ended
    case .malformed: break
    case .refused(let frame, let reason):
      guard frame.kind == .request || frame.kind == .oneWay else { break }
      counters.change { if reason == .tooLarge { $0.oversized += 1 } else { $0.lackingResources += 1 } }
      lock.withLock { send(MessageContent(.refusal, id: reason.rawValue, token: frame.token), []) }
      return .message
    case .message(let frame, let bytes, let descriptors):
      guard frame.kind == .request || frame.kind == .oneWay else { break }
      lock.withLock { state.unfinished += 1 }
      counters.change { $0.received += 1 }
      deliver(MessagePort.Request(frame, bytes, descriptors, from: self))
      return frame.kind == .request ? .request : .message
    }
    counters.change { $0.malformed += 1 }
    return .ended
  }
}

// What goes back. Any thread.
extension LocalClient {
  /// Answers a request.
  func answer(_ token: UInt64, _ reply: MessagePort.Reply?) {
    // The parent answers its senders.
    guard !lock.isParents else { return }
    let content: MessageContent
    if let reply {
      content = self.content(token, reply)
    } else {
      content = MessageContent(.noReply, token: token)
    }
    lock.lock()
    state.unfinished -= 1
    if state.isClosed {
      counters.change { $0.droppedReplies += 1 }
    } else {
      counters.change { $0.replies += 1 }
      send(content, reply?.descriptors ?? [])
      arm()
    }
    lock.unlock()
  }

  /// Tells the sender that a message is not taken.
  func refuse(_ token: UInt64, _ reason: MessagePort.Refusal) {
    guard !lock.isParents else { return }
    lock.lock()
    state.unfinished -= 1
    send(MessageContent(.refusal, id: reason.rawValue, token: token), [])
    arm()
    lock.unlock()
  }

  /// Notes that a one-way message was received.
  func noteReceived(_ token: UInt64) {
    guard !lock.isParents else { return }
    lock.lock()
    state.unfinished -= 1
    state.received = max(state.received, token)
    // While it is served, one confirmation is made for many.
    if !state.isServing {
      sendConfirmation()
      arm()
    }
    lock.unlock()
  }

  private func content(_ token: UInt64, _ reply: MessagePort.Reply) -> MessageContent {
    func refusal(_ reason: MessagePort.Refusal) -> MessageContent {
      MessageContent(.refusal, id: reason.rawValue, token: token)
    }
    guard reply.bytes.count <= limits.messageSize else { return refusal(.tooLarge) }
    guard reply.descriptors.count <= MessageFrame.descriptorLimit else { return refusal(.descriptorsLost) }
    let numbers = reply.descriptors.isEmpty ? [] : reply.descriptors.map(\.number)
    do {
      return try MessageContent(.reply, id: 0, token: token, bytes: reply.bytes, descriptors: numbers)
    } catch {
      return refusal(.noResources)
    }
  }

  /// Sends now, or when there is room; with the lock.
  private func send(_ content: MessageContent, _ owners: [MessagePort.Descriptor]) {
    guard !state.isClosed else { return }
    if state.waiting > 0 { return state.append(content, owners) }
    if !sendNow(content) { state.append(content, owners) }
  }

  /// Sends; false, if there is no room: with the lock.
  ///
  /// If the other end is gone, whoever reads is told of it soon, and what there was to send is dropped.
  private func sendNow(_ content: MessageContent) -> Bool {
    do {
      try content.send(on: socket)
      return true
    } catch {
      switch error.number {
      case EAGAIN: return false
      case EPIPE, ECONNRESET, ENOTCONN: return true
      default: break
      }
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
      _ = state.removeNext()
    }
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
    state.isClosed = true
    state.outgoing = []
    state.outgoingOwners = []
    state.firstOutgoing = 0
    // The descriptor closes with the last who uses it, which may be a request that somebody keeps.
    _ = try? SystemCall.epollControl.make { crl_epoll_control(epoll.number, EPOLL_CTL_DEL, socket.number, 0, 0) }
    _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
  }
}
