// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

extension SpawnedProcess {
  /// A signal that asks a child to end, and the time that it then has.
  public struct TeardownStep: Hashable, Sendable {
    /// The signal.
    public let signal: Int32
    /// How long to wait for the end before the next step, or before the child is killed.
    public let grace: Duration

    /// Sends a signal, and waits.
    public static func send(signal: Int32, within grace: Duration) -> TeardownStep {
      TeardownStep(signal: signal, grace: grace)
    }

    /// Sends `SIGTERM`, and waits.
    public static func terminate(within grace: Duration) -> TeardownStep {
      TeardownStep(signal: SIGTERM, grace: grace)
    }
  }

  /// Asks the child to end, and kills it if it has not ended in time; the same for the process group that it leads.
  ///
  /// It is ``tearDown(by:on:inModes:of:onKill:)`` with one step.
  @discardableResult
  public func terminate(
    within grace: Duration, on loop: RunLoop, inModes modes: [RunLoop.Mode] = [.common], signal: Int32 = 15,
    of target: SignalTarget? = nil,
    onKill: (@Sendable (SpawnedProcess) -> Void)? = nil
  ) throws(SystemError) -> Bool {
    try tearDown(
      by: [.send(signal: signal, within: grace)], on: loop, inModes: modes, of: target, onKill: onKill)
  }

  /// Asks the child to end by one signal after the other, and kills it if it has not ended by then; the same for the
  /// process group that it leads.
  ///
  /// A process that is stopped is continued, so that it sees the signals. The loop counts the time; it need not be the
  /// loop that waits for the child. Once a source has seen the end, nothing more happens, unless other processes of the
  /// group were left then and can be reached: see ``SignalTarget/group``. If the loop ends before the time is over,
  /// nothing more is sent.
  ///
  /// - Parameters:
  ///   - steps: The signals, in their order; if there are none, the child is killed at once.
  ///   - loop: The loop on whose clock the time is counted.
  ///   - modes: The modes of the loop in which the time is counted.
  ///   - target: The processes that are asked and killed; nil means the group if the child leads one.
  ///   - onKill: Called on the loop when the child, or the rest of its group, is killed after the last step. An ended
  ///     child that has not been reaped counts as part of the group.
  /// - Returns: Whether the child was asked; false if it has ended.
  /// - Throws: `pidfd_send_signal` with `EINVAL` if there is no such signal in the first step, with `EPERM` if the
  ///   child has become another user's.
  @discardableResult
  public func tearDown(
    by steps: [TeardownStep], on loop: RunLoop, inModes modes: [RunLoop.Mode] = [.common],
    of target: SignalTarget? = nil, onKill: (@Sendable (SpawnedProcess) -> Void)? = nil
  ) throws(SystemError) -> Bool {
    let target = target ?? (leadsGroup ? .group : .process)
    guard target == .group || !hasEnded else { return false }
    do throws(SystemError) {
      try send(signal: steps.first?.signal ?? SIGKILL, to: target)
    } catch {
      guard error.number == ESRCH else { throw error }
      return false
    }
    guard let first = steps.first else { return true }
    // It may have ended by now.
    try? send(signal: SIGCONT, to: target)
    let taken = Atomic<Int>(1)
    // It repeats, whatever the interval: each call-out sets the next deadline, or invalidates it. One that fires once
    // would end with the first step.
    let timer = Timer(deadline: loop.instant(after: first.grace), interval: .seconds(1)) { [self] timer in
      // One timer, whose handler is not called by two threads at a time.
      let next = taken.wrappingAdd(1, ordering: .relaxed).oldValue
      guard target == .group || !hasEnded else { return timer.invalidate() }
      guard next < steps.count else {
        timer.invalidate()
        // It may end, and be reaped, just now.
        if (try? send(signal: SIGKILL, to: target)) != nil { onKill?(self) }
        return
      }
      try? send(signal: steps[next].signal, to: target)
      timer.deadline = loop.instant(after: steps[next].grace)
    }
    guard child.escalate(by: timer, ofGroup: target == .group) else { return true }
    for mode in modes { loop.add(timer, forMode: mode) }
    return true
  }
}
