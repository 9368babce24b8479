// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// The reason why a test on virtual time cannot go on.
public enum VirtualTimeError: Error, Hashable, Sendable {
  /// Every loop sleeps, nothing is due, and none of them was woken within the limit of real time.
  ///
  /// The description names the loops that sleep and what is in them.
  case sleepsIndefinitely(after: Duration, awaiting: [String])
  /// A loop has made many passes at one time and still finds something to do: a source or block that posts itself
  /// again, or a descriptor that nobody reads.
  case neverSleeps(thread: String, at: Duration, passes: Int)
  /// The time was moved many times and there is still something to come, such as a repeating timer.
  case neverIdle(at: Duration, moves: Int, pending: [String])
  /// Other threads whose loops are on this time have run, or were blocked, for longer than the limit of real time.
  case busy(threads: [String], after: Duration)
  /// The time was to be moved on a thread that does not own it, or while its owner moves it.
  case notOwner(thread: String)
  /// The time was to be moved within an action that was passed to ``VirtualTime/at(_:do:)``, which represents another
  /// thread.
  case insideEvent(thread: String)
  /// One pass was to be made on a thread without a loop on this time.
  case noLoop(thread: String)
  /// The thread whose loop was to be run is ending.
  case threadIsEnding(thread: String)
}

extension VirtualTimeError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .sleepsIndefinitely(let limit, let awaiting):
      "the test would sleep indefinitely: nothing is due at any time, and nobody has woken a loop for \(limit.text) of real time; "
        + Self.list(awaiting, "no loop is left on this time") + Self.sleepHint
    case .neverSleeps(let thread, let time, let passes):
      "\(thread) has made \(passes) passes \(time) after the beginning and still finds something to do, so that the time "
        + "cannot go on: something posts itself again, or a descriptor is ready that nobody serves"
    case .neverIdle(let time, let moves, let pending):
      "the time was moved \(moves) times, to \(time) after the beginning, and something is still to come: "
        + Self.list(pending, "nothing that is known")
    case .busy(let threads, let limit):
      "the time cannot go on: \(threads.joined(separator: ", ")) did not come to sleep within \(limit.text) of real time"
    case .insideEvent(let thread):
      "the time cannot be moved within an action of `at(_:do:)`, which stands for what another thread does, here on \(thread)"
    case .notOwner(let thread):
      "the time cannot be moved by \(thread): call this on the thread that owns the time, the test's own, and not "
        + "within another such call"
    case .noLoop(let thread): "\(thread) has no loop on this time: use `VirtualTime.onThisThread` or `asMain`"
    case .threadIsEnding(let thread): "the loop of \(thread) cannot be run any more: the thread is ending"
    }
  }

  /// What may be the reason where the runtime ends the sleeps of tasks.
  private static var sleepHint: String {
    guard !ResidentThread.endsSleeps else { return "" }
    return
      "; with Swift 6.2 a task's plain sleep is no timer of a loop and takes real time: sleep on `VirtualTime.clock`, "
      + "or build with Swift 6.3"
  }

  private static func list(_ entries: [String], _ none: String) -> String {
    entries.isEmpty ? none : entries.joined(separator: "; ")
  }
}
