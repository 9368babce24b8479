// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// MARK: - Time limits. Used only on the loader's thread.
extension Transfer {
  /// The time at which the next timeout or scheduled action is due.
  var deadline: Tick {
    // While the request is paused, only the total timeout applies.
    guard state.isRunning || state.isFinishing else { return state.stage == .paused ? totalDue : .never }
    let due = min(min(totalDue, beginDue), min(progress.drainDue, progress.waitDue))
    guard let idle = settings.idle, state.isRunning, beginDue == .never, !isWaitingForUs else { return due }
    return min(due, lastActivity + idle)
  }

  /// Whether a lack of activity is not the fault of the peer.
  private var isWaitingForUs: Bool {
    if state.stage == .held { return true }
    guard let attempt else { return interceptions?.isAsking == true }
    if holds.contains(.review) { return true }
    if attempt.isSendingPaused { return true }
    // It is waiting for its turn with the host, unless the first connection to that host is still being made.
    return !attempt.hasBegun && !(attempt.waitsForMultiplexing && !core.multiplexes(attempt.exchange.address))
  }

  /// Restarts the idle timeout from a time at which it was suspended, and updates the deadline.
  func waitsForPeer(since time: Tick) {
    noteActivity(at: time)
    core.note(deadline: deadline)
  }

  func timeHasCome(_ now: Tick) {
    if totalDue <= now {
      return apply(.expired(HTTP.Error(.timedOut, "the request took longer than it may in all")))
    }
    if beginDue <= now {
      beginDue = .never
      lastActivity = now
      tryNow()
      return core.note(deadline: deadline)
    }
    if progress.waitDue <= now {
      // Interceptors may review the error for a while.
      progress.waitDue = .never
      return fail(HTTP.Error(.connectionWaitTimedOut, "no connection to the host became free in time"))
    }
    guard deadline <= now else { return }
    // An intermediate response, which is only read to keep the connection reusable.
    if let plan = progress.plan, case .deliver = plan {
    } else if let plan = progress.plan {
      if let attempt { core.drop(attempt) }
      leaveAttempt()
      return goOn(plan)
    }
    if hasWholeAnswer, holds.isEmpty { return endEarly() }
    fail(HTTP.Error(.timedOut, "nothing came or went for the idle timeout"))
  }
}
