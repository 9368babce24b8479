// SPDX-License-Identifier: Apache-2.0

/// The value of a loop's wake word: who sleeps, which wake-ups are kept, and what has ended the sleep.
///
/// Every change is ``applying(_:)``, a pure function; ``WakeWord`` applies it to the atomic, and the tests enumerate
/// it.
struct WakeState: Hashable, Sendable {
  /// Who sleeps for the loop, and so how a poster wakes it.
  ///
  /// The field has room for eight.
  enum Sleeper: UInt32, Sendable, CaseIterable {
    case nobody = 0
    /// The loop's thread sleeps on the word itself.
    case futex = 1
    /// Virtual time passes for the loop.
    case virtual = 2
    /// The loop's thread waits in an epoll set that contains a counter.
    case epoll = 3
    /// Another loop waits for this one, and has a gate among its descriptors.
    case hosted = 4
    /// The loop's thread looks at the word itself, so that no call is needed to wake it.
    case looking = 5
  }

  /// What a poster has for the loop, recorded by the poster that wakes it.
  ///
  /// Later posters find the loop awake and leave the record as it is.
  enum Cause: UInt32, Sendable, CaseIterable {
    /// Something whose place in the order is not kept: a moved timer, a message, a stop, or a bare wake-up.
    case unknown = 0
    /// A block or an executor's job.
    case block = 0b0_1000_0000
    /// A signalled source, or work that was handed over.
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
  /// A run is active and has a wait before it, and has not been woken.
  static let listening = WakeState(bits: running | listeningBit)

  var sleeper: Sleeper {
    guard let sleeper = Sleeper(rawValue: bits & Self.sleeperMask) else { preconditionFailure("\(self)") }
    return sleeper
  }
  /// Whether a run is active.
  var isRunning: Bool { bits & Self.running != 0 }
  /// Whether the innermost run has a wait before it: a wake-up counts for that wait.
  var isListening: Bool { bits & Self.listeningBit != 0 }
  /// Whether a wake-up has arrived for the coming wait, or has ended it.
  var isWoken: Bool { bits & Self.woken != 0 }
  /// Whether a wake-up arrived when the wait was over: the next pass answers it.
  var isLate: Bool { bits & Self.late != 0 }
  /// What the poster that ended the last sleep had for the loop, until the loop is awake.
  var cause: Cause { Cause(rawValue: bits & Self.causeMask) ?? .unknown }
}

extension WakeState {
  enum Event: Hashable, Sendable {
    /// A run begins. The caller that applies it keeps the state before for the run's end.
    case beginRun
    /// The innermost run ends and restores the state before it.
    case endRun(before: WakeState)
    /// The top of a pass.
    case beginPass
    /// The loop is about to sleep and will look for work once more.
    case announceSleep(Sleeper)
    /// A look is over: the loop sleeps from now on if it was not woken meanwhile.
    case fallAsleep(Sleeper)
    /// The loop no longer sleeps, whatever the cause.
    case awaken
    /// The wait of this pass is over; wake-ups are answered by the next pass.
    case endWait
    /// There is work that the loop would find if it looked.
    case post(Cause)
    /// One more pass is requested.
    case wakeUp(Cause)
  }

  /// The state after an event, and the sleeper to wake for it.
  ///
  /// If it is inlined where the event is known, it takes a few instructions.
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
      // A wake-up that the ended run has not answered belongs to the run around it.
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

  /// Of many posters, the one whose change takes the sleeper out of the word makes the call that wakes the sleeper.
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
