// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

/// A connection to a local port.
///
/// One thread at a time serves it, so that its messages are received in order on any number of loops. It is armed in
/// the port's epoll set for the events it waits for. A thread that finds it being served disarms it, to avoid repeated
/// wake-ups, and it is armed again after it was served. A connection with unfinished messages at the limit causes no
/// wake-ups.
final class LocalClient: @unchecked Sendable {
  // Sendable: the lock guards `state`. The role of the serving thread, which the lock passes on, guards `reader` and
  // the variables after it.
  let key: UInt64
  let socket: MessagePort.Descriptor
  let credentials: MessagePort.Credentials
  let isForeign: Bool
  /// The time by which the sender must have sent a message.
  let silenceEnd: SuspendingClock.Instant?
  let account: MessageAccount
  let limits: MessagePort.Limits
  let epoll: MessagePort.Descriptor
  /// The port's account, which has the counters.
  let counters: MessageAccount
  let lock = ProcessLock()
  // Exclusivity is not checked: the lock guards it, and no code called with the lock held accesses it again.
  @exclusivity(unchecked) var state = LocalClientState()
  let reader = MessageReader()

  /// Whether the sender sends one request at a time: when last checked after a request, it had sent nothing more.
  @exclusivity(unchecked) var asksOneByOne = false
  /// The number of turns that have ended after their first request for this reason.
  @exclusivity(unchecked) var shortTurns = 0

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
    counters = port.account
  }

  func enter() throws(SystemError) {
    _ = try SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_ADD, socket.number, Self.reading, key)
    }
  }

  // A connection that must not be read is armed for a single event, because a hang-up is always reported and would
  // otherwise be reported repeatedly.

  static let once = EPOLLONESHOT.rawValue
  static let reading = EPOLLIN.rawValue | EPOLLRDHUP.rawValue
  /// Reports each packet that the receiver takes, whether or not there is room for another.
  private static let takenByReceiver = EPOLLOUT.rawValue | EPOLLET.rawValue

  /// Arms the connection for the events it waits for, unless it is being served; requires the lock.
  func arm() {
    guard !state.isClosed, !state.isServing else { return }
    guard !state.isHeldBack else { return arm(Self.takenByReceiver) }
    let mayRead = self.mayRead
    // After a hang-up, the connection has nothing new to report until it may be read again. It is rearmed then.
    guard mayRead || !state.isHungUp else { return disarm() }
    let mustWrite = state.waiting > 0 || (state.confirmed < state.received && !state.confirmsLater)
    arm((mayRead ? Self.reading : Self.once) | (mustWrite ? EPOLLOUT.rawValue | Self.once : 0))
  }

  /// Whether another message may be read; requires the lock.
  var mayRead: Bool { state.mayRead(limit: limits.maximumUnfinishedMessageCount, bytes: limits.connectionBytes) }

  func disarm() { if state.armed != nil { arm(Self.once) } }

  private func arm(_ events: UInt32) {
    guard events != state.armed else { return }
    let answer = try? SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_MOD, socket.number, events, key)
    }
    state.armed = answer == nil ? nil : events
  }

  /// Returns whether the time limit for the first message has passed without one.
  func isSilent(at now: SuspendingClock.Instant) -> Bool {
    guard let silenceEnd, silenceEnd <= now else { return false }
    return lock.withLock { !state.hasSpoken }
  }

  var mustSpeak: Bool { silenceEnd != nil && lock.withLock { !state.hasSpoken && !state.isClosed } }
}
