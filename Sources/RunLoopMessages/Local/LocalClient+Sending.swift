// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// Sending to the other end. Can be called from any thread.
extension LocalClient {
  /// Sends the reply to a request whose payload has `size` bytes.
  func answer(_ token: UInt64, _ size: Int, _ reply: MessagePort.Reply?) {
    // After a fork, only the parent replies.
    guard lock.lockUnlessParents() else { return }
    state.unfinished -= 1
    state.unfinishedBytes -= size
    if state.isClosed {
      account.release(.init(incoming: size)) { $0.droppedReplyCount += 1 }
    } else {
      account.release(.init(incoming: size)) { $0.replyCount += 1 }
      if let reply { send(reply, token) } else { send(MessageContent(.noReply, token: token), []) }
      if !state.isClosed { arm() }
    }
    lock.unlock()
  }

  /// Notifies the sender that a message of `size` bytes is rejected.
  func reject(_ token: UInt64, _ size: Int, _ reason: MessagePort.Rejection) {
    guard !lock.isParents else { return }
    account.release(.init(incoming: size))
    lock.lock()
    state.unfinished -= 1
    state.unfinishedBytes -= size
    send(MessageContent(.rejection, id: reason.rawValue, token: token), [])
    arm()
    lock.unlock()
  }

  func noteReceived(_ token: UInt64, _ size: Int) {
    guard !lock.isParents else { return }
    account.release(.init(incoming: size))
    lock.lock()
    state.unfinished -= 1
    state.unfinishedBytes -= size
    state.received = max(state.received, token)
    // While the connection is being served, one confirmation is sent for many messages.
    if !state.isServing {
      sendConfirmation()
      arm()
    }
    lock.unlock()
  }

  /// Sends a reply now or when there is room, or sends a rejection; requires the lock, which may be released
  /// temporarily.
  private func send(_ reply: MessagePort.Reply, _ token: UInt64) {
    func reject(_ reason: MessagePort.Rejection) {
      send(MessageContent(.rejection, id: reason.rawValue, token: token), [])
    }
    guard reply.bytes.count <= limits.maximumMessageSize else { return reject(.tooLarge) }
    guard reply.descriptors.count <= MessageFrame.descriptorLimit else { return reject(.descriptorsLost) }
    let numbers = reply.descriptors.isEmpty ? [] : reply.descriptors.map(\.number)
    var content = MessageContent(.reply, id: 0, token: token, bytes: reply.bytes, descriptors: numbers)
    // The socket bounds what fits in its packets, so a reply that is sent at once need not be charged.
    if !isCharged(content.frame), state.waiting == 0, sendNow(&content) { return }
    let isTooMuch = state.waiting > 0 && content.amount.outgoing > limits.connectionBytes - state.waitingBytes
    guard !isTooMuch, account.take(content.amount) else {
      counters.change {
        $0.replyCount -= 1
        $0.overQuotaCount += 1
      }
      return reject(.quotaExceeded)
    }
    if content.frame.isOutOfLine, state.waiting == 0, account.maySend(content.amount, on: key) {
      // Copy the payload without the lock, because that can take long.
      lock.unlock()
      let isReady = (try? content.prepare()) != nil
      lock.lock()
      guard isReady, !state.isClosed else {
        account.release(content.amount)
        if state.isClosed { return noteDropped(content.frame) }
        return reject(.noResources)
      }
    }
    if state.waiting == 0, sendNow(&content) {
      if !isCharged(content.frame) { account.release(content.amount) }
      return
    }
    // Waiting memory costs more than waiting bytes, so create it again when there is room.
    content.forgetMemory()
    state.append(content, reply.descriptors)
  }

  /// Counts a reply whose receiver has closed the connection.
  private func noteDropped(_ frame: MessageFrame) {
    guard frame.kind.isAnswer else { return }
    counters.change {
      $0.replyCount -= 1
      $0.droppedReplyCount += 1
    }
  }

  /// Returns whether a reply stays charged until its receiver has read it.
  private func isCharged(_ frame: MessageFrame) -> Bool {
    frame.kind == .reply && (isForeign || frame.carriedDescriptors > 0)
  }

  /// Sends now or when there is room; requires the lock.
  func send(_ content: MessageContent, _ owners: [MessagePort.Descriptor]) {
    guard !state.isClosed else { return }
    var content = content
    if state.waiting == 0, sendNow(&content) { return }
    state.append(content, owners)
  }

  /// Tries to send now.
  ///
  /// Returns false if there is no room, or if the receiver has much to read first. Requires the lock. If the other end
  /// has closed the connection, the message is dropped, and the serving thread notices the end soon.
  ///
  /// - Parameter content: The message, which this prepares if its payload is sent in memory.
  private func sendNow(_ content: inout MessageContent) -> Bool {
    let isCharged = isCharged(content.frame)
    state.isHeldBack = isCharged && !account.maySend(content.amount, on: key)
    guard !state.isHeldBack else { return false }
    do {
      try content.prepare()
      if content.frame.kind.isAnswer { content.frame.id = MessageFrame.time(of: Tick.monotonicNow.nanoseconds) }
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
        noteDropped(content.frame)
        return true
      default: break
      }
      if isCharged { account.release(content.amount) }
      counters.change {
        if content.frame.kind.isAnswer { $0.replyCount -= 1 }
        $0.failedSendCount += 1
      }
      // Notify the sender with the smallest possible message.
      let reason = MessagePort.Rejection.noResources.rawValue
      do {
        try MessageContent(.rejection, id: reason, token: content.frame.token).send(on: socket)
      } catch {
        // A sender that cannot be notified must not wait indefinitely, so end the connection.
        _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
      }
      return true
    }
  }

  /// Sends queued messages as far as there is room; requires the lock.
  ///
  /// - Returns: The owners of the descriptors that were sent. Release them without the lock, because closing one can
  ///   take long.
  func sendWaiting() -> [MessagePort.Descriptor] {
    var sent: [MessagePort.Descriptor] = []
    while var next = state.next {
      guard sendNow(&next) else { return sent }
      // If the charge continues, `sendNow` has recorded it.
      if next.frame.kind == .reply, !isCharged(next.frame) { account.release(next.amount) }
      sent += state.removeNext()
    }
    state.isHeldBack = false
    sendConfirmation()
    return sent
  }

  /// Confirms received messages; requires the lock.
  func sendConfirmation() {
    guard state.waiting == 0, state.confirmed < state.received, !state.isClosed else { return }
    var content = MessageContent(.confirmation, token: state.received)
    if sendNow(&content) { state.confirmed = state.received }
  }

  func close() {
    lock.lock()
    guard !state.isClosed else { return lock.unlock() }
    let sent = sendWaiting()
    sendConfirmation()
    let dropped = state.removeWaiting()
    for (content, _) in dropped {
      noteDropped(content.frame)
      if content.frame.kind == .reply { account.release(content.amount) }
    }
    account.noteReading(of: key)
    state.isClosed = true
    state.isHeldBack = false
    // The descriptor is closed when its last user, such as a request that is still retained, releases it.
    _ = try? SystemCall.epollControl.make { crl_epoll_control(epoll.number, EPOLL_CTL_DEL, socket.number, 0, 0) }
    _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
    lock.unlock()
    // Release these without the lock, because closing a descriptor of a handler can take long.
    withExtendedLifetime((sent, dropped)) {}
  }
}
