// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

// What arrives. One thread at a time.
extension LocalClient {
  /// How a turn of a connection has ended.
  private enum Turn {
    /// There was nothing.
    case isEmpty
    case hasRead
    /// It has ended with its last message, and there may be more.
    case isFull
    /// Another thread drops the next message, and goes on then.
    case isDropping
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
    guard beginServing(events) else { return .hadNothing }
    return finishServing(deliver)
  }

  /// Becomes the serving thread and sends what waits; false, if the connection cannot be served now.
  private func beginServing(_ events: UInt32) -> Bool {
    lock.lock()
    if let armed = state.armed, armed & Self.once != 0 { state.armed = nil }
    guard !state.isServing, !state.isClosed else {
      // Somebody else serves it, and arms it then.
      if state.isServing { disarm() }
      lock.unlock()
      return false
    }
    state.isServing = true
    if events & EPOLLHUP.rawValue != 0 { state.isHungUp = true }
    let sent = events & EPOLLOUT.rawValue != 0 || state.isHeldBack ? sendWaiting() : []
    lock.unlock()
    // Closing a handler's descriptor can take long, and others may want the lock.
    withExtendedLifetime(sent) {}
    return true
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
    guard turn != .isDropping else {
      dropNext()
      return .isDone
    }
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
        // Another read would find nothing; if it would, the loop is notified.
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
    /// The next is rejected and to be dropped.
    case left
    case ended
  }

  /// Reads one message and delivers it.
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
    // Consumed, so that what came with the message is handed on and not counted once more.
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
      // The others are counted as they are charged.
      if isForeign || frame.isOutOfLine { counters.change { $0.receivedCount += 1 } }
      deliver(MessagePort.Request(frame, bytes, descriptors, from: self))
      return frame.kind == .request ? .request : .message
    case .malformed, .rejected, .left: break
    }
    counters.change { $0.malformedCount += 1 }
    return .ended
  }

  /// Reads the next message of this process's user, whose descriptors are charged when they have arrived.
  private func nextOwn() throws(SystemError) -> MessageReader.Incoming {
    var admitted: MessageAccount.Amount?
    var isTaken = false
    defer { if !isTaken, let admitted { account.release(admitted) } }
    let incoming = try reader.next(on: socket, limit: limits.maximumMessageSize) { frame in
      let amount = MessageAccount.Amount(incoming: frame.length, descriptors: frame.descriptorCount)
      // What is in the packet is received with that.
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

  /// Notifies the sender that a message is not taken.
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

  /// Has the next packet dropped by the thread that closes the descriptors in it.
  ///
  /// Until then it is served by that thread, and so by no other.
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
