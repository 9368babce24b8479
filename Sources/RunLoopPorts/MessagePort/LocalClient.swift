import CRunLoopSystem
import Glibc
import RunLoopCore

/// A connection to a local port.
///
/// In the port's epoll set it is armed for one event at a time: whoever takes the event serves the connection and arms it
/// again, so that its messages are received in order, in whatever loop, and a connection whose messages are not finished
/// wakes nobody.
final class LocalClient: @unchecked Sendable {
  // Sendable: `state` is guarded by the lock, `reader` by the role of the serving thread.
  let key: UInt64
  let socket: MessagePort.Descriptor
  let credentials: MessagePort.Credentials
  private let limits: MessagePort.Limits
  private let epoll: MessagePort.Descriptor
  private let counters: LocalCounters
  private let lock = Lock()
  private var state = LocalClientState()
  private let reader = MessageReader()

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

  private static let once = EPOLLONESHOT.rawValue
  private static let reading = EPOLLIN.rawValue | EPOLLRDHUP.rawValue | once

  /// Arms the connection for what it waits for; with the lock, not while it is served.
  private func arm() {
    guard !state.isClosed, !state.isServing else { return }
    var events: UInt32 = 0
    if state.mayRead(limit: limits.unfinishedMessages) {
      events |= Self.reading
    } else if state.isHungUp {
      // It would be told of that at once, again and again: it is armed when it may be read.
      return
    }
    if state.waiting > 0 || state.confirmed < state.received { events |= EPOLLOUT.rawValue | Self.once }
    // Even then the kernel tells when the other end is gone.
    _ = try? SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_MOD, socket.number, events | Self.once, key)
    }
  }

  /// Sends and reads what can be, and delivers it; false: the connection is over.
  ///
  /// A loop's thread. At most so many messages as are a turn's.
  func serve(_ events: UInt32, _ deliver: (MessagePort.Request) -> Void) -> Bool {
    lock.lock()
    // Somebody else serves it, and arms it then.
    guard !state.isServing, !state.isClosed else {
      lock.unlock()
      return true
    }
    state.isServing = true
    if events & EPOLLHUP.rawValue != 0 { state.isHungUp = true }
    if events & EPOLLOUT.rawValue != 0 { sendWaiting() }
    lock.unlock()
    var isOpen = true
    for _ in 0..<32 {
      guard lock.withLock({ state.mayRead(limit: limits.unfinishedMessages) }) else { break }
      guard let more = readOne(deliver) else {
        isOpen = false
        break
      }
      if !more { break }
    }
    lock.lock()
    if isOpen { sendConfirmation() }
    state.isServing = false
    if isOpen { arm() }
    lock.unlock()
    return isOpen
  }

  /// Reads one message and delivers it; false: none is there; nil: the connection is over.
  private func readOne(_ deliver: (MessagePort.Request) -> Void) -> Bool? {
    let incoming: MessageReader.Incoming
    do {
      incoming = try reader.next(on: socket, limit: limits.messageSize)
    } catch {
      counters.add(\.failedReads)
      return nil
    }
    switch incoming {
    case .nothing: return false
    case .ended: return nil
    case .malformed: break
    case .refused(let frame, let reason):
      guard frame.kind == .request || frame.kind == .oneWay else { break }
      counters.add(reason == .tooLarge ? \.oversized : \.lackingResources)
      lock.withLock { send(MessageContent(.refusal, id: reason.rawValue, token: frame.token), []) }
      return true
    case .message(let frame, let bytes, let descriptors):
      guard frame.kind == .request || frame.kind == .oneWay else { break }
      lock.withLock { state.unfinished += 1 }
      counters.add(\.received)
      deliver(MessagePort.Request(frame, bytes, descriptors, from: self))
      return true
    }
    counters.add(\.malformed)
    return nil
  }
}

// What goes back. Any thread.
extension LocalClient {
  /// Answers a request.
  func answer(_ token: UInt64, _ reply: MessagePort.Reply?) {
    let content: MessageContent
    if let reply {
      content = self.content(token, reply)
    } else {
      content = MessageContent(.noReply, token: token)
    }
    lock.lock()
    state.unfinished -= 1
    if state.isClosed {
      counters.add(\.droppedReplies)
    } else {
      counters.add(\.replies)
      send(content, reply?.descriptors ?? [])
      arm()
    }
    lock.unlock()
  }

  /// Tells the sender that a message is not taken.
  func refuse(_ token: UInt64, _ reason: MessagePort.Refusal) {
    lock.lock()
    state.unfinished -= 1
    send(MessageContent(.refusal, id: reason.rawValue, token: token), [])
    arm()
    lock.unlock()
  }

  /// Notes that a one-way message was received.
  func noteReceived(_ token: UInt64) {
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
    do {
      return try MessageContent(
        .reply, id: 0, token: token, bytes: reply.bytes, descriptors: reply.descriptors.map(\.number))
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

  /// Sends; false: there is no room.  With the lock.
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
      counters.add(\.failedSends)
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
    for _ in 0..<state.waiting { counters.add(\.droppedReplies) }
    state.isClosed = true
    state.outgoing = []
    state.outgoingOwners = []
    state.firstOutgoing = 0
    // The descriptor closes with the last who uses it, which may be a request that somebody keeps.
    _ = try? SystemCall.epollControl.make { crl_epoll_control(epoll.number, EPOLL_CTL_DEL, socket.number, 0, 0) }
    _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
  }
}
