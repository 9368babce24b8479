// SPDX-License-Identifier: Apache-2.0

/// The value of a loop's wake word: the kind of sleeper, the pending wake-ups, and the cause of the last wake-up.
///
/// All changes are made by ``applying(_:)``, a pure function that ``WakeWord`` applies to the atomic and that the tests
/// check exhaustively.
struct WakeState: Hashable, Sendable {
  /// The way in which the loop sleeps, which determines how a poster wakes it.
  ///
  /// The field has room for eight cases.
  enum Sleeper: UInt32, Sendable, CaseIterable {
    case nobody = 0
    /// The loop's thread sleeps on the word itself.
    case futex = 1
    /// The loop waits on virtual time.
    case virtual = 2
    /// The loop's thread waits in an epoll set that contains a counter.
    case epoll = 3
    /// Another loop waits in place of this one, and watches a gate.
    case hosted = 4
    /// The loop's thread polls the word, so no system call is needed to wake it.
    case looking = 5
  }

  /// The kind of work that woke the loop, recorded by the poster that wakes it.
  ///
  /// Later posters find the loop awake and do not change the record.
  enum Cause: UInt32, Sendable, CaseIterable {
    /// A cause that does not affect the order of service: a moved timer, a message, a stop, or a plain wake-up.
    case unknown = 0
    /// A block or an executor's job.
    case block = 0b0_1000_0000
    /// A signalled source or a hand-off.
    case source = 0b1_0000_0000
  }

  var bits: UInt32

  private static let sleeperMask: UInt32 = 0b111
  private static let running: UInt32 = 1 << 3
  private static let listeningBit: UInt32 = 1 << 4
  private static let woken: UInt32 = 1 << 5
  private static let late: UInt32 = 1 << 6
  private static let causeMask: UInt32 = 0b1_1000_0000

  /// No run is active.
  static let idle = WakeState(bits: 0)
  /// A run is active, its wait is still to come, and it has not been woken.
  static let listening = WakeState(bits: running | listeningBit)

  var sleeper: Sleeper {
    guard let sleeper = Sleeper(rawValue: bits & Self.sleeperMask) else { preconditionFailure("\(self)") }
    return sleeper
  }
  /// Whether a run is active.
  var isRunning: Bool { bits & Self.running != 0 }
  /// Whether the wait of the innermost run's pass is still to come, so that a wake-up ends that wait.
  var isListening: Bool { bits & Self.listeningBit != 0 }
  /// Whether a wake-up has arrived for the next wait, or has ended it.
  var isWoken: Bool { bits & Self.woken != 0 }
  /// Whether a wake-up arrived after the wait, so that the next pass handles it.
  var isLate: Bool { bits & Self.late != 0 }
  /// The cause of the wake-up that ended the last sleep, until the loop is awake.
  var cause: Cause { Cause(rawValue: bits & Self.causeMask) ?? .unknown }
}

extension WakeState {
  enum Event: Hashable, Sendable {
    /// A run begins. The caller saves the previous state for ``endRun(before:)``.
    case beginRun
    /// The innermost run ends, which restores the state from before it.
    case endRun(before: WakeState)
    /// A pass begins.
    case beginPass
    /// The loop is about to sleep, and will check for work once more.
    case announceSleep(Sleeper)
    /// Polling is over. The loop sleeps from now on, unless it was woken in the meantime.
    case fallAsleep(Sleeper)
    /// The loop no longer sleeps, for any reason.
    case awaken
    /// The wait of this pass is over; the next pass handles further wake-ups.
    case endWait
    /// Work was posted, which the loop finds when it checks for work.
    case post(Cause)
    /// One more pass is requested.
    case wakeUp(Cause)
  }

  /// Returns the state after an event, and the sleeper to wake.
  ///
  /// It takes a few instructions if it is inlined with a constant event.
  @inline(__always)
  func applying(_ event: Event) -> (state: WakeState, woken: Sleeper) {
    var next = self
    switch event {
    case .beginRun:
      requireAwake(event)
      next.bits = Self.running | Self.listeningBit
    case .endRun(let before):
      requireAwake(event)
      next = before
      // A wake-up that the ended run has not handled is passed to the outer run.
      if before.isRunning, isWoken || isLate { next.bits |= before.isListening ? Self.woken : Self.late }
    case .beginPass:
      requireAwake(event)
      next.bits |= Self.listeningBit
      next.bits &= ~Self.late
    case .announceSleep(let sleeper):
      requireAwake(event)
      precondition(sleeper != .nobody && isListening, "\(event) in \(self)")
      next.bits |= sleeper.rawValue
    case .fallAsleep(let sleeper):
      precondition(sleeper != .nobody && sleeper != .looking, "\(event) in \(self)")
      if self.sleeper == .looking { next.bits = bits & ~Self.sleeperMask | sleeper.rawValue }
    case .awaken:
      next.bits &= ~(Self.sleeperMask | Self.causeMask)
    case .endWait:
      requireAwake(event)
      next.bits &= ~(Self.woken | Self.listeningBit)
    case .post(let cause):
      return waking(next, cause)
    case .wakeUp(let cause):
      guard isRunning else { return (self, .nobody) }
      next.bits |= isListening ? Self.woken : Self.late
      return waking(next, cause)
    }
    return (next, .nobody)
  }

  /// If there are several posters, only the one that removes the sleeper from the word makes the call that wakes it.
  @inline(__always)
  private func waking(_ next: WakeState, _ cause: Cause) -> (state: WakeState, woken: Sleeper) {
    let woken = sleeper
    guard woken != .nobody else { return (next, woken) }
    return (WakeState(bits: next.bits & ~Self.sleeperMask | cause.rawValue), woken)
  }

  private func requireAwake(_ event: Event) {
    precondition(bits & Self.sleeperMask == 0, "\(event) in \(self)")
  }
}

extension WakeState: CustomStringConvertible {
  var description: String {
    let sleeper = Sleeper(rawValue: bits & Self.sleeperMask)
    var words = [sleeper == .looking ? "looking" : "\(sleeper.map { "\($0)" } ?? "?") sleeps"]
    if isRunning { words.append("running") }
    if isListening { words.append("listening") }
    if isWoken { words.append("woken") }
    if isLate { words.append("late") }
    if cause != .unknown { words.append("by a \(cause)") }
    return words.joined(separator: ", ")
  }
}
