// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

// Receiving, on one thread at a time.
extension LocalClient {
  private enum Turn {
    /// No message had arrived.
    case isEmpty
    case hasRead
    /// The limit of messages was reached, and there may be more.
    case isFull
    /// Another thread drops the next message and then continues.
    case isDropping
    case isOver
  }

  /// The maximum number of messages per turn.
  private static let turn = 32
  /// The number of bytes after which a turn ends, so that other connections are served.
  private static let turnBytes = 1 << 20
  /// The number of messages after which a confirmation is sent although more are waiting.
  private static let confirmations = 256
  /// The number of consecutive short turns after which to check again whether there are more messages.
  private static let shortTurnLimit = 16

  enum Service {
    case isDone
    /// No message had arrived, or the connection cannot be served now.
    case hadNothing
    case isOver
  }

  /// Sends and receives what is possible, and delivers received messages, at most as many as one turn allows; must be
  /// called on a loop's thread.
  func serve(_ events: UInt32, _ deliver: (MessagePort.Request) -> Void) -> Service {
    guard beginServing(events) else { return .hadNothing }
    return finishServing(deliver)
  }

  /// Makes this the serving thread and sends queued messages, or returns false if the connection cannot be served now.
  private func beginServing(_ events: UInt32) -> Bool {
    lock.lock()
    if let armed = state.armed, armed & Self.once != 0 { state.armed = nil }
    guard !state.isServing, !state.isClosed else {
      // Another thread is serving the connection, and arms it afterwards.
      if state.isServing { disarm() }
      lock.unlock()
      return false
    }
    state.isServing = true
    if events & EPOLLHUP.rawValue != 0 { state.isHungUp = true }
    let sent = events & EPOLLOUT.rawValue != 0 || state.isHeldBack ? sendWaiting() : []
    lock.unlock()
    // Release these without the lock, because closing a descriptor of a handler can take long.
    withExtendedLifetime(sent) {}
    return true
  }

  /// Serves the connection without a prior event from the port's epoll set.
  func serveUnasked(_ deliver: (MessagePort.Request) -> Void) -> Service {
    lock.lock()
    // If it is armed for anything else, only the epoll set knows whether it is ready.
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
    guard turn != .isDropping else {
      dropNext()
      return .isDone
    }
    // Confirm together with the next turn if that is certain to follow, provided that the sender does not wait for it.
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
    case .hasRead, .isFull, .isDropping: return .isDone
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
      case .left: return .isDropping
      case .request where index == 0 && asksOneByOne && shortTurns < Self.shortTurnLimit:
        // Skip a read that would find nothing. If there is another message, the loop is notified.
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
    /// The next message was rejected and has to be dropped.
    case left
    case ended
  }

  private func readOne(_ deliver: (MessagePort.Request) -> Void, _ turnBytes: inout Int) -> Reading {
    let incoming: MessageReader.Incoming
    do {
      incoming =
        isForeign
        ? try reader.next(
          on: socket, limit: limits.maximumMessageSize, paidBy: account,
          takesDescriptors: limits.takesDescriptorsOfOtherUsers)
        : try nextOwn()
    } catch {
      counters.change { $0.failedReadCount += 1 }
      return .ended
    }
    // Consumed, so that the contents are moved without additional reference counting.
    switch consume incoming {
    case .nothing: return .nothing
    case .ended: return .ended
    case .left(_, .descriptorsUnwanted):
      counters.change { $0.untrustedCount += 1 }
      let reason = MessagePort.Rejection.descriptorsUnwanted
      lock.withLock { send(MessageContent(.rejection, id: reason.rawValue, token: 0), []) }
      return .ended
    case .rejected(let frame, let reason) where frame.kind.expectsAnswer:
      reject(frame, reason)
      return .message
    case .left(let frame, let reason) where frame.kind.expectsAnswer:
      reject(frame, reason)
      return .left
    case .message(let frame, let bytes, let descriptors):
      guard frame.kind.expectsAnswer else {
        account.release(.init(incoming: bytes.count))
        break
      }
      turnBytes += bytes.count
      lock.withLock {
        state.unfinished += 1
        state.unfinishedBytes += bytes.count
        state.hasSpoken = true
      }
      // Other messages are counted when they are charged.
      if isForeign || frame.isOutOfLine { counters.change { $0.receivedCount += 1 } }
      deliver(MessagePort.Request(frame, bytes, descriptors, from: self))
      return frame.kind == .request ? .request : .message
    case .malformed, .rejected, .left: break
    }
    counters.change { $0.malformedCount += 1 }
    return .ended
  }

  /// Reads the next message from this process's user, whose descriptors are charged after they have arrived.
  private func nextOwn() throws(SystemError) -> MessageReader.Incoming {
    var admitted: MessageAccount.Amount?
    var isTaken = false
    defer { if !isTaken, let admitted { account.release(admitted) } }
    let incoming = try reader.next(on: socket, limit: limits.maximumMessageSize) { frame in
      let amount = MessageAccount.Amount(incoming: frame.length, descriptors: frame.descriptorCount)
      // A payload within the packet is received together with it.
      let isReceived = !frame.isOutOfLine && frame.kind.expectsAnswer
      guard account.take(amount, counts: isReceived) else { return .quotaExceeded }
      admitted = amount
      return nil
    }
    if case .message(_, _, let descriptors) = incoming {
      isTaken = true
      for descriptor in descriptors { descriptor.charge(MessageCharge(.init(descriptors: 1), to: account)) }
    }
    return incoming
  }

  private func reject(_ frame: MessageFrame, _ reason: MessagePort.Rejection) {
    counters.change {
      switch reason {
      case .tooLarge: $0.oversizedCount += 1
      case .quotaExceeded: $0.overQuotaCount += 1
      default: $0.lackingResourceCount += 1
      }
    }
    lock.withLock { send(MessageContent(.rejection, id: reason.rawValue, token: frame.token), []) }
  }

  /// Makes the thread that closes descriptors drop the next packet, and serve this connection until then.
  private func dropNext() {
    let drop: @Sendable () -> Void = {
      _ = crl_message_discard(self.socket.number)
      self.lock.withLock {
        self.state.isServing = false
        self.sendConfirmation()
        self.arm()
      }
    }
    if let closer = account.closer { closer.perform(drop) } else { drop() }
  }
}
