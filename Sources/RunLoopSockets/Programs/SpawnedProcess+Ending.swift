// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

extension SpawnedProcess {
  /// A signal that asks a child to end, and the time that it has to do so.
  public struct TeardownStep: Hashable, Sendable {
    /// The signal.
    public let signal: Int32
    /// The time to wait for the end before the next step, or before the child is killed.
    public let grace: Duration

    /// Sends a signal, and waits for the end.
    public static func send(signal: Int32, within grace: Duration) -> TeardownStep {
      TeardownStep(signal: signal, grace: grace)
    }

    /// Sends `SIGTERM`, and waits for the end.
    public static func terminate(within grace: Duration) -> TeardownStep {
      TeardownStep(signal: SIGTERM, grace: grace)
    }
  }

  /// Asks the child, or the process group that it leads, to end, and kills it if it has not ended in time.
  ///
  /// This is ``tearDown(by:on:inModes:of:onKill:)`` with one step.
  @discardableResult
  public func terminate(
    within grace: Duration, on loop: RunLoop, inModes modes: [RunLoop.Mode] = [.common], signal: Int32 = 15,
    of target: SignalTarget? = nil,
    onKill: (@Sendable (SpawnedProcess) -> Void)? = nil
  ) throws(SystemError) -> Bool {
    try tearDown(
      by: [.send(signal: signal, within: grace)], on: loop, inModes: modes, of: target, onKill: onKill)
  }

  /// Asks the child, or the process group that it leads, to end with a series of signals, and kills it if it has not
  /// ended by then.
  ///
  /// A stopped process is continued, so that it can handle the signals. The loop measures the time; it need not be the
  /// loop that waits for the child. Nothing more is sent after a source has reported the end, unless the group still
  /// has other processes that can be signaled (see ``SignalTarget/group``), or after the loop has ended.
  ///
  /// - Parameters:
  ///   - steps: The signals, in order. If there are none, the child is killed at once.
  ///   - loop: The loop that measures the time.
  ///   - modes: The modes of the loop in which the time is measured.
  ///   - target: The processes to signal. Defaults to `nil`, which means the group if the child leads one, and the
  ///     child otherwise.
  ///   - onKill: Called on the loop when the child, or the rest of its group, is killed after the last step. A child
  ///     that has ended but was not reaped counts as part of the group.
  /// - Returns: Whether the child was signaled; false if it has already ended.
  /// - Throws: `pidfd_send_signal` with `EINVAL` if the first step's signal does not exist, or with `EPERM` if the
  ///   child now belongs to another user.
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
    // The child may have ended by now, so ignore errors.
    try? send(signal: SIGCONT, to: target)
    let taken = Atomic<Int>(1)
    // A repeating timer whose interval is never used: each call-out sets the next deadline or invalidates it. A
    // one-shot timer would end after the first step.
    let timer = Timer(deadline: loop.instant(after: first.grace), interval: .seconds(1)) { [self] timer in
      // Relaxed, because a timer's handler never runs on two threads at a time.
      let next = taken.wrappingAdd(1, ordering: .relaxed).oldValue
      guard target == .group || !hasEnded else { return timer.invalidate() }
      guard next < steps.count else {
        timer.invalidate()
        // The child may end and be reaped at this moment.
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
