// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// An error that prevents a test on virtual time from continuing.
public enum VirtualTimeError: Error, Hashable, Sendable {
  /// Every loop sleeps, nothing is due, and no other thread has woken a loop within the limit of real time.
  ///
  /// The description lists the sleeping loops and their items.
  case sleepsIndefinitely(after: Duration, awaiting: [String])
  /// A loop has made many passes without a move of the time and still has work to do.
  ///
  /// A source or block posts itself again, or no handler reads a descriptor.
  case neverSleeps(thread: String, at: Duration, passes: Int)
  /// The time was moved many times and something is still pending, such as a repeating timer.
  case neverIdle(at: Duration, moves: Int, pending: [String])
  /// Other threads with loops on this time ran or were blocked for longer than the limit of real time.
  case busy(threads: [String], after: Duration)
  /// A thread tried to move the time without owning it, or while its owner was moving it.
  case notOwner(thread: String)
  /// An action passed to ``VirtualTime/at(_:do:)`` tried to move the time.
  ///
  /// Such actions represent another thread.
  case insideEvent(thread: String)
  /// A pass was requested on a thread without a loop on this time.
  case noLoop(thread: String)
  /// A run was requested on a thread that is ending.
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

  /// A hint for toolchains whose runtime ends the sleeps of tasks itself.
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
