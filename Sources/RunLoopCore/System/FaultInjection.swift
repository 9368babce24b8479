// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

// What tests do to a loop and to the system calls, in debug builds only.

/// Ways to break a loop on purpose, so that the tests can see the laboratory's experiments fail.
///
/// Only a debug build has them: in a release build the set is a constant, and every question about it is answered by
/// the compiler.
package struct LoopFaults: OptionSet, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  package static let observersReversed = LoopFaults(rawValue: 1 << 0)
  package static let stopIgnored = LoopFaults(rawValue: 1 << 1)
  package static let missedTicksMadeUp = LoopFaults(rawValue: 1 << 2)
  package static let commonItemsNotCopied = LoopFaults(rawValue: 1 << 3)
  package static let timersInEveryMode = LoopFaults(rawValue: 1 << 4)
  package static let duplicatesAdded = LoopFaults(rawValue: 1 << 5)
  package static let observersKeepAlive = LoopFaults(rawValue: 1 << 6)
  package static let emptyModesForgotten = LoopFaults(rawValue: 1 << 7)
  package static let toleranceIgnored = LoopFaults(rawValue: 1 << 8)
  package static let sleepInSlices = LoopFaults(rawValue: 1 << 9)
  package static let newTimersAdded = LoopFaults(rawValue: 1 << 10)
  package static let invalidKept = LoopFaults(rawValue: 1 << 11)
  package static let commonModeRuns = LoopFaults(rawValue: 1 << 12)
  package static let signalsWake = LoopFaults(rawValue: 1 << 13)
  package static let portsSilent = LoopFaults(rawValue: 1 << 14)
  package static let postsMakeTimers = LoopFaults(rawValue: 1 << 15)
  package static let descriptionIncomplete = LoopFaults(rawValue: 1 << 16)
  package static let mainQueueIgnored = LoopFaults(rawValue: 1 << 17)
  package static let loopsOutliveThreads = LoopFaults(rawValue: 1 << 18)
  package static let otherLoopsGiven = LoopFaults(rawValue: 1 << 19)
  package static let handOffsAreBlocks = LoopFaults(rawValue: 1 << 22)
  package static let stagesSkipped = LoopFaults(rawValue: 1 << 23)
  package static let emptyModesNotWaitedFor = LoopFaults(rawValue: 1 << 24)
  package static let removalsWake = LoopFaults(rawValue: 1 << 25)

  // What is done to a thread and not to its loop, by the laboratory's bench.

  package static let threadsHeld = LoopFaults(rawValue: 1 << 20)
  package static let strangersAdded = LoopFaults(rawValue: 1 << 21)
}

extension LoopFaults {
  #if DEBUG
    /// Whether this build can be broken on purpose.
    package static let isPossible = true
  #else
    /// Whether this build can be broken on purpose.
    package static let isPossible = false
  #endif
}

extension RunLoop {
  /// How the calling thread's loop is broken: the loops of threads that it makes are broken alike.
  static var inheritedFaults: LoopFaults { currentIfMade?.faults ?? [] }

  /// Breaks a loop that exists already, as the main loop does, or mends it again.
  ///
  /// The loop's thread, while the loop does not run and no other thread uses it. A release build does nothing.
  package func setFaults(_ faults: LoopFaults) {
    #if DEBUG
      self.faults = faults
    #endif
  }
}

#if DEBUG
  /// What a test does to the system calls of its thread.
  package final class FaultPlan {
    package enum Fault: Sendable {
      /// The call is not made and fails with this error number.
      case fails(Int32)
      /// The call is not made and returns this result.
      case answers(Int32)
    }

    private var faults: [SystemCall: [Fault?]] = [:]

    package init() {}

    /// How many times each call was asked for.
    package private(set) var counts: [SystemCall: Int] = [:]

    /// The plan of the calling thread.
    package static var current: FaultPlan? {
      crl_fault_slot_get().map { Unmanaged<FaultPlan>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Lets the next calls of a kind fail in turn; nil lets one pass.
    package func plan(_ call: SystemCall, _ faults: Fault?...) {
      self.faults[call, default: []] += faults
    }

    /// Whether every planned fault has arrived.
    package var isUsedUp: Bool { faults.values.allSatisfy(\.isEmpty) }

    func next(_ call: SystemCall) -> Fault? {
      counts[call, default: 0] += 1
      guard var planned = faults[call], !planned.isEmpty else { return nil }
      let fault = planned.removeFirst()
      faults[call] = planned
      return fault
    }

    /// Lets the plan rule the calling thread's system calls during `body`.
    package func rule<Result>(_ body: () throws -> Result) rethrows -> Result {
      crl_fault_slot_set(Unmanaged.passUnretained(self).toOpaque())
      defer { crl_fault_slot_set(nil) }
      return try body()
    }

    /// Lets the plan rule the calling thread's system calls until ``endRuling()`` on the same thread; the caller holds
    /// it.
    package func beginRuling() { crl_fault_slot_set(Unmanaged.passUnretained(self).toOpaque()) }
    /// Lets no plan rule the calling thread's system calls.
    package static func endRuling() { crl_fault_slot_set(nil) }
  }
#endif
