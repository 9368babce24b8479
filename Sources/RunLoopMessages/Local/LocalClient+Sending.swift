// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// What goes back. Any thread.
extension LocalClient {
  /// Answers a request of so many bytes.
  func answer(_ token: UInt64, _ size: Int, _ reply: MessagePort.Reply?) {
    // The parent answers its senders.
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

  /// Notifies the sender that a message of so many bytes is not taken.
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
    func reject(_ reason: MessagePort.Rejection) {
      send(MessageContent(.rejection, id: reason.rawValue, token: token), [])
    }
    guard reply.bytes.count <= limits.maximumMessageSize else { return reject(.tooLarge) }
    guard reply.descriptors.count <= MessageFrame.descriptorLimit else { return reject(.descriptorsLost) }
    let numbers = reply.descriptors.isEmpty ? [] : reply.descriptors.map(\.number)
    var content = MessageContent(.reply, id: 0, token: token, bytes: reply.bytes, descriptors: numbers)
    // What fits into the packets of a socket is bounded with that; a reply that is sent at once need not be charged.
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
      // Copying takes its time.
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
    // Memory is made again when there is room: it costs more than bytes that wait.
    content.forgetMemory()
    state.append(content, reply.descriptors)
  }

  /// Counts a reply whose sender is gone.
  private func noteDropped(_ frame: MessageFrame) {
    guard frame.kind.isAnswer else { return }
    counters.change {
      $0.replyCount -= 1
      $0.droppedReplyCount += 1
    }
  }

  /// Whether a reply stays charged until its receiver has taken it.
  private func isCharged(_ frame: MessageFrame) -> Bool {
    frame.kind == .reply && (isForeign || frame.carriedDescriptors > 0)
  }

  /// Sends now, or when there is room; with the lock.
  func send(_ content: MessageContent, _ owners: [MessagePort.Descriptor]) {
    guard !state.isClosed else { return }
    var content = content
    if state.waiting == 0, sendNow(&content) { return }
    state.append(content, owners)
  }

  /// Sends; false, if there is no room, or if the receiver has much to take before: with the lock.
  ///
  /// If the other end is gone, whoever reads is notified of it soon, and what there was to send is dropped.
  ///
  /// - Parameter content: The message, which the call prepares if it lies in memory.
  private func sendNow(_ content: inout MessageContent) -> Bool {
    let isCharged = isCharged(content.frame)
    state.isHeldBack = isCharged && !account.maySend(content.amount, on: key)
    guard !state.isHeldBack else { return false }
    do {
      try content.prepare()
      if content.frame.kind.isAnswer { content.frame.noteSender(.current) }
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
      // The sender is notified, with as little as can be sent.
      let reason = MessagePort.Rejection.noResources.rawValue
      do {
        try MessageContent(.rejection, id: reason, token: content.frame.token).send(on: socket)
      } catch {
        // A sender that cannot be notified of the reason must not wait for it: the connection ends.
        _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
      }
      return true
    }
  }

  /// Sends what waits, as far as there is room; with the lock.
  ///
  /// - Returns: Who kept the descriptors of what was sent, to be released without the lock: closing one can take long.
  func sendWaiting() -> [MessagePort.Descriptor] {
    var sent: [MessagePort.Descriptor] = []
    while var next = state.next {
      guard sendNow(&next) else { return sent }
      // A charge that goes on is noted with what was sent.
      if next.frame.kind == .reply, !isCharged(next.frame) { account.release(next.amount) }
      sent += state.removeNext()
    }
    state.isHeldBack = false
    sendConfirmation()
    return sent
  }

  /// Confirms what was received; with the lock.
  func sendConfirmation() {
    guard state.waiting == 0, state.confirmed < state.received, !state.isClosed else { return }
    var content = MessageContent(.confirmation, token: state.received)
    if sendNow(&content) { state.confirmed = state.received }
  }

  /// Ends the connection, with what can still be said; again: nothing.
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
    // The descriptor closes with the last who uses it, which may be a request that somebody keeps.
    _ = try? SystemCall.epollControl.make { crl_epoll_control(epoll.number, EPOLL_CTL_DEL, socket.number, 0, 0) }
    _ = try? SystemCall.shutDown.make { crl_message_shut_down(socket.number) }
    lock.unlock()
    // Closing a handler's descriptor can take long, and others may want the lock.
    withExtendedLifetime((sent, dropped)) {}
  }
}
