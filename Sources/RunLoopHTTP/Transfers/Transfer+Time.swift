// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// The time limits of a request. The loader's thread.
extension Transfer {
  /// When something is to be done unless something happens before.
  var deadline: Tick {
    // Of the time limits, that for the whole request alone goes on while it is paused.
    guard state.isRunning || state.isFinishing else { return state.stage == .paused ? totalDue : .never }
    let due = min(min(totalDue, beginDue), min(progress.drainDue, progress.waitDue))
    guard let idle = settings.idle, state.isRunning, beginDue == .never, !isWaitingForUs else { return due }
    return min(due, lastActivity + idle)
  }

  /// Whether the other side is not to blame that nothing comes or goes.
  private var isWaitingForUs: Bool {
    if state.stage == .held { return true }
    guard let attempt else { return interceptions?.isAsking == true }
    if holds.contains(.review) { return true }
    if attempt.isSendingPaused { return true }
    // It waits for its turn with a host, but not for a host whose first connection is still being made.
    return !attempt.hasBegun && !(attempt.waitsForMultiplexing && !core.multiplexes(attempt.exchange.address))
  }

  /// Counts the idle timeout from a time on, which no look at the deadlines has seen while it did not count.
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
      // Interceptors may be asked about the error for a while.
      progress.waitDue = .never
      return fail(HTTP.Error(.connectionWaitTimedOut, "no connection to the host became free in time"))
    }
    guard deadline <= now else { return }
    // An answer that is only waited for to leave the connection whole.
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
