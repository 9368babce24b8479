// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

/// A connection to a local port.
///
/// One thread at a time serves it, so that its messages are received in order, in whatever loop. In the port's epoll
/// set it is armed for what it waits for. Whoever finds it being served disarms it, so as not to be woken repeatedly,
/// and it is armed when it has been served. A connection whose messages are not finished wakes nobody.
final class LocalClient: @unchecked Sendable {
  // Sendable: `state` is guarded by the lock, `reader` by the role of the serving thread.
  let key: UInt64
  let socket: MessagePort.Descriptor
  let credentials: MessagePort.Credentials
  /// Whether it is another user's.
  let isForeign: Bool
  /// Until when it has to have said something.
  let silenceEnd: SuspendingClock.Instant?
  let account: MessageAccount
  let limits: MessagePort.Limits
  let epoll: MessagePort.Descriptor
  /// The account of all, which counts.
  let counters: MessageAccount
  let lock = ProcessLock()
  // Not checked for exclusive access: the lock guards it, and nothing that is called under it calls back.
  @exclusivity(unchecked) var state = LocalClientState()
  let reader = MessageReader()

  // The serving thread's.

  /// Whether the sender had nothing more to say when it was last asked after a request: it waits for the reply.
  @exclusivity(unchecked) var asksOneByOne = false
  /// How many turns have ended with their first request because of that.
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

  /// Enters the port's epoll set.
  func enter() throws(SystemError) {
    _ = try SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_ADD, socket.number, Self.reading, key)
    }
  }

  // A connection that may not be read is armed for one event at a time: a hang-up is always reported, and would be
  // reported forever.

  static let once = EPOLLONESHOT.rawValue
  static let reading = EPOLLIN.rawValue | EPOLLRDHUP.rawValue
  /// Reports every packet that the receiver takes, whether there is room for another or not.
  private static let takenByReceiver = EPOLLOUT.rawValue | EPOLLET.rawValue

  /// Arms the connection for what it waits for; with the lock, not while it is served.
  func arm() {
    guard !state.isClosed, !state.isServing else { return }
    guard !state.isHeldBack else { return arm(Self.takenByReceiver) }
    let mayRead = self.mayRead
    // Nothing new can be reported of it: it is armed when it may be read.
    guard mayRead || !state.isHungUp else { return disarm() }
    let mustWrite = state.waiting > 0 || (state.confirmed < state.received && !state.confirmsLater)
    arm((mayRead ? Self.reading : Self.once) | (mustWrite ? EPOLLOUT.rawValue | Self.once : 0))
  }

  /// Whether one more message may be read; with the lock.
  var mayRead: Bool { state.mayRead(limit: limits.maximumUnfinishedMessageCount, bytes: limits.connectionBytes) }

  func disarm() { if state.armed != nil { arm(Self.once) } }

  private func arm(_ events: UInt32) {
    guard events != state.armed else { return }
    let answer = try? SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_MOD, socket.number, events, key)
    }
    state.armed = answer == nil ? nil : events
  }

  /// Whether it has said nothing until its time was over.
  func isSilent(at now: SuspendingClock.Instant) -> Bool {
    guard let silenceEnd, silenceEnd <= now else { return false }
    return lock.withLock { !state.hasSpoken }
  }

  /// Whether it still has to say something.
  var mustSpeak: Bool { silenceEnd != nil && lock.withLock { !state.hasSpoken && !state.isClosed } }
}
