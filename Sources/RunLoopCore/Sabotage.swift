// SPDX-License-Identifier: Apache-2.0

/// Ways to break a loop on purpose, so that the tests can see the laboratory's experiments fail.
///
/// Only a debug build has them: in a release build the set is a constant, and every question about it is answered by the
/// compiler.
package struct Sabotage: OptionSet, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  package static let observersReversed = Sabotage(rawValue: 1 << 0)
  package static let stopIgnored = Sabotage(rawValue: 1 << 1)
  package static let missedTicksMadeUp = Sabotage(rawValue: 1 << 2)
  package static let commonItemsNotCopied = Sabotage(rawValue: 1 << 3)
  package static let timersInEveryMode = Sabotage(rawValue: 1 << 4)
  package static let duplicatesAdded = Sabotage(rawValue: 1 << 5)
  package static let observersKeepAlive = Sabotage(rawValue: 1 << 6)
  package static let emptyModesForgotten = Sabotage(rawValue: 1 << 7)
  package static let toleranceIgnored = Sabotage(rawValue: 1 << 8)
  package static let sleepInSlices = Sabotage(rawValue: 1 << 9)
  package static let newTimersAdded = Sabotage(rawValue: 1 << 10)
  package static let invalidKept = Sabotage(rawValue: 1 << 11)
  package static let commonModeRuns = Sabotage(rawValue: 1 << 12)
  package static let signalsWake = Sabotage(rawValue: 1 << 13)
  package static let portsSilent = Sabotage(rawValue: 1 << 14)
  package static let postsMakeTimers = Sabotage(rawValue: 1 << 15)
  package static let descriptionIncomplete = Sabotage(rawValue: 1 << 16)
  package static let mainQueueIgnored = Sabotage(rawValue: 1 << 17)
  package static let loopsOutliveThreads = Sabotage(rawValue: 1 << 18)
  package static let otherLoopsGiven = Sabotage(rawValue: 1 << 19)
  package static let handOffsAreBlocks = Sabotage(rawValue: 1 << 22)
  package static let stagesSkipped = Sabotage(rawValue: 1 << 23)
  package static let emptyModesNotWaitedFor = Sabotage(rawValue: 1 << 24)
  package static let removalsWake = Sabotage(rawValue: 1 << 25)

  // What is done to a thread and not to its loop, by the laboratory's bench.

  package static let threadsHeld = Sabotage(rawValue: 1 << 20)
  package static let strangersAdded = Sabotage(rawValue: 1 << 21)
}

extension Sabotage {
  #if DEBUG
    /// Whether this build can be sabotaged.
    package static let isPossible = true
  #else
    /// Whether this build can be sabotaged.
    package static let isPossible = false
  #endif
}

extension RunLoop {
  /// How the calling thread's loop is broken: the loops of threads that it makes are broken alike.
  static var inheritedSabotage: Sabotage { currentIfMade?.sabotage ?? [] }

  /// Breaks a loop that exists already, as the main loop does, or mends it again.
  ///
  /// The loop's thread, while the loop does not run and no other thread uses it. A release build does nothing.
  package func setSabotage(_ sabotage: Sabotage) {
    #if DEBUG
      self.sabotage = sabotage
    #endif
  }
}
