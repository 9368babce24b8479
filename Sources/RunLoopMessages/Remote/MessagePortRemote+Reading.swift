// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

// One thread at a time reads the socket: the first one that needs something. It distributes the packets that arrive.
// The other waiting threads sleep on a word that changes when the reading thread hands its role on.
extension MessagePort.Remote {
  /// Takes the role of the reading thread, or returns false if another thread has it.
  private func takeRole() -> Bool {
    lock.withLock {
      guard !state.isReading else { return false }
      state.isReading = true
      return true
    }
  }

  private func giveRoleUp(isCallOut: Bool) {
    lock.lock()
    state.isReading = false
    let hasFollowers = state.followers > 0
    if hasFollowers { readWord.wrappingAdd(1, ordering: .releasing) }
    let mayReport = !state.rejected.isEmpty
    lock.unlock()
    if hasFollowers { readWord.futexWake(.max) }
    if mayReport { report(isCallOut: isCallOut) }
  }

  /// Reports rejected messages, on one thread at a time and without the reading role, so that `undelivered` can use
  /// the port.
  private func report(isCallOut: Bool) {
    while true {
      lock.lock()
      guard !state.isReporting, !state.rejected.isEmpty else { return lock.unlock() }
      state.isReporting = true
      let rejected = state.rejected.removeFirst()
      lock.unlock()
      if isCallOut, let undelivered { noteCall(of: UndeliveredHandler(call: undelivered)) }
      undelivered?(rejected)
      lock.lock()
      state.isReporting = false
      let hasFollowers = state.followers > 0
      if hasFollowers { readWord.wrappingAdd(1, ordering: .releasing) }
      lock.unlock()
      if hasFollowers { readWord.futexWake(.max) }
    }
  }

  /// Reads and distributes all packets that have arrived, unless another thread is already doing so.
  ///
  /// - Parameter isCallOut: Whether this was called by a loop rather than by a function of the user.
  func readWhatIsThere(isCallOut: Bool = false) {
    guard takeRole() else { return }
    // Bounded, because the other end may write faster than this reads.
    for _ in 0..<256 { guard readOne(blocks: false, isCallOut: isCallOut) else { break } }
    giveRoleUp(isCallOut: isCallOut)
  }

  /// Reads a packet and distributes it, on the reading thread, or returns false if there is none or the connection has
  /// ended.
  private func readOne(blocks: Bool, isCallOut: Bool = false) -> Bool {
    let incoming: MessageReader.Incoming
    do {
      incoming = try reader.next(on: socket, blocks: blocks, limit: maximumMessageSize)
    } catch {
      finish(.system(error), isCallOut: isCallOut)
      return false
    }
    // Consumed, so that the contents are moved without additional reference counting.
    switch consume incoming {
    case .nothing: return false
    case .ended:
      finish(.peerClosed, isCallOut: isCallOut)
      return false
    case .malformed, .left: return rejectMalformed(isCallOut)
    case .rejected(let frame, let reason):
      guard frame.kind == .reply else { return rejectMalformed(isCallOut) }
      complete(
        frame.token,
        .failure(reason == .tooLarge ? .messageTooLarge(frame.length, limit: maximumMessageSize) : .rejected(reason)))
    case .message(let frame, let bytes, let descriptors):
      if frame.kind.isAnswer { answerTime = frame.id }
      switch frame.kind {
      case .reply: complete(frame.token, .success(MessagePort.Reply(bytes, descriptors: descriptors)))
      case .noReply: complete(frame.token, .success(nil))
      case .confirmation: confirm(upTo: frame.token)
      case .rejection: return takeRejection(frame.token, MessagePort.Rejection(rawValue: frame.id) ?? .other, isCallOut)
      case .request, .oneWay: return rejectMalformed(isCallOut)
      }
    }
    return true
  }

  private func rejectMalformed(_ isCallOut: Bool) -> Bool {
    lock.withLock { state.statistics.malformedCount += 1 }
    finish(.peerMalformed, isCallOut: isCallOut)
    return false
  }

  private func confirm(upTo token: UInt64) {
    lock.withLock { state.statistics.confirmedCount += state.unconfirmed.confirm(upTo: token) }
  }

  private func takeRejection(_ token: UInt64, _ reason: MessagePort.Rejection, _ isCallOut: Bool) -> Bool {
    guard token != 0 else {
      finish(.rejected(reason), isCallOut: isCallOut)
      return false
    }
    let isOneWay = lock.withLock {
      guard let entry = state.unconfirmed.remove(token) else { return false }
      state.statistics.undeliveredCount += 1
      if undelivered != nil {
        state.rejected.append(MessagePort.Undelivered(serial: token, id: entry.id, reason: .rejected(reason)))
      }
      return true
    }
    if !isOneWay { complete(token, .failure(.rejected(reason))) }
    return true
  }

  /// Passes an outcome to the waiter with a token.
  func complete(_ token: UInt64, _ outcome: consuming ReplyWaiter.Outcome, isReply: Bool = true) {
    lock.lock()
    guard let waiter = state.pending.remove(token) else {
      if isReply { state.statistics.lateReplyCount += 1 }
      return lock.unlock()
    }
    if case .success = outcome { state.statistics.replyCount += 1 }
    guard let wake = waiter.wake else {
      waiter.outcome = consume outcome
      return lock.unlock()
    }
    waiter.outcome = outcome
    lock.unlock()
    wake(outcome)
  }
}

// MARK: - Blocking threads
extension MessagePort.Remote {
  /// Waits for an outcome; the waiter is no longer registered when the call returns.
  func awaitReply(_ waiter: ReplyWaiter, until deadline: Tick) throws(MessagePortError) -> MessagePort.Reply? {
    while true {
      lock.lock()
      if let outcome = waiter.takeOutcome() {
        state.spareWaiter = waiter
        lock.unlock()
        return try outcome.get()
      }
      guard deadline == .never || Tick.monotonicNow < deadline else {
        state.pending.remove(waiter.token)
        lock.unlock()
        throw .receiveTimedOut
      }
      if state.isReading {
        follow(until: deadline)
      } else {
        state.isReading = true
        lock.unlock()
        readNext(until: deadline)
        giveRoleUp(isCallOut: false)
      }
    }
  }

  /// Waits until the reading thread has made progress; requires the lock, which is released.
  func follow(until deadline: Tick) {
    state.followers += 1
    let seen = readWord.load(ordering: .relaxed)
    lock.unlock()
    readWord.futexWait(while: seen, until: deadline)
    lock.withLock { state.followers -= 1 }
  }

  /// Waits for a packet and reads it.
  ///
  /// May return early. The reading thread polls before it sleeps, as a loop does. Only the kernel knows whether a
  /// packet has arrived, so polling consists of nonblocking reads.
  private func readNext(until deadline: Tick) {
    let waiting = RunLoop.waiting
    // The kernel's thread ID would require a system call.
    let thread = pthread_self()
    if lookingThread != thread {
      lookingThread = thread
      looker.forgetPlace()
    }
    let looks = looker.isDue(waiting)
    guard looks || looker.measures(waiting) else { return sleepAndRead(until: deadline) }
    let began = Tick.monotonicNow
    if looks {
      let outcome = looker.look(
        from: began, until: deadline, limit: waiting.limit, isOver: { false },
        poll: { readOne(blocks: false) || lock.withLock { state.end != nil } })
      if outcome == .found { return }
    }
    answerTime = nil
    sleepAndRead(until: deadline)
    let sent = answerTime.map {
      Tick(nanoseconds: MessageFrame.nanoseconds(of: $0, receivedAt: Tick.monotonicNow.nanoseconds))
    }
    looker.noteSleep(
      from: began, endedBy: Waker(time: sent ?? .distantPast, processor: -1), isEvent: false, limit: waiting.limit)
  }

  private func sleepAndRead(until deadline: Tick) {
    if setTimeout(deadline) {
      _ = readOne(blocks: true)
    } else if awaitPacket(until: deadline) {
      _ = readOne(blocks: false)
    }
  }

  /// Sets the socket's timeout so that a blocking read ends at the deadline, or returns false if that is not possible.
  private func setTimeout(_ deadline: Tick) -> Bool {
    let limit = deadline == .never ? 0 : Self.roundedTimeout((deadline + -Tick.monotonicNow.nanoseconds).nanoseconds)
    guard limit != socketTimeout else { return true }
    guard (try? SystemCall.socketOption.make { crl_message_set_timeout(socket.number, 0, limit) }) != nil else {
      return false
    }
    socketTimeout = limit
    return true
  }

  /// Rounds a timeout down to one of a few values, so that consecutive requests need not set it again; a thread that
  /// wakes too early waits again.
  private static func roundedTimeout(_ left: Int64) -> Int64 {
    guard left > 1_000_000 else { return max(1_000, left) }
    return 1 << (63 - left.leadingZeroBitCount)
  }

  /// Waits for a packet with `poll`, which is slower, and returns whether there may be one.
  private func awaitPacket(until deadline: Tick) -> Bool {
    let limit = deadline == .never ? -1 : max(0, (deadline + -Tick.monotonicNow.nanoseconds).nanoseconds)
    do {
      return try SystemCall.messagePoll.make { crl_message_poll(socket.number, Int16(POLLIN), limit) } != 0
    } catch {
      if error.number != EINTR { finish(.system(error)) }
      return false
    }
  }

  /// Waits until there may be room to send, in the socket or because messages were confirmed.
  ///
  /// Packets that arrive in the meantime are read, because otherwise both ends could wait for each other.
  func awaitRoom(writable: Bool, until deadline: Tick) throws(MessagePortError) {
    let now = Tick.monotonicNow
    guard now < deadline else { throw .sendTimedOut }
    lock.lock()
    if let end = state.end {
      lock.unlock()
      throw end
    }
    let reads = !state.isReading
    guard reads || writable else { return follow(until: deadline) }
    if reads { state.isReading = true }
    lock.unlock()
    defer { if reads { giveRoleUp(isCallOut: false) } }
    let events = (reads ? POLLIN : 0) | (writable ? POLLOUT : 0)
    let limit = deadline == .never ? -1 : (deadline + -now.nanoseconds).nanoseconds
    var ready: Int32 = 0
    do throws(SystemError) {
      ready = try SystemCall.messagePoll.make { crl_message_poll(socket.number, Int16(events), limit) }
    } catch {
      guard error.number == EINTR else { throw .system(error) }
    }
    if reads, ready & ~POLLOUT != 0 { for _ in 0..<256 { guard readOne(blocks: false) else { break } } }
  }
}
