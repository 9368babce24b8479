// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

#if DEBUG
  /// The faults that a test plans for the system calls of its thread.
  package final class FaultPlan {
    package enum Fault: Sendable {
      /// The call is not made and fails with this error number.
      case fails(Int32)
      /// The call is not made and returns this result.
      case answers(Int32)
    }

    private var faults: [SystemCall: [Fault?]] = [:]

    package init() {}

    /// How many times each call was made.
    package private(set) var counts: [SystemCall: Int] = [:]

    /// The plan of the calling thread.
    package static var current: FaultPlan? {
      crl_fault_slot_get().map { Unmanaged<FaultPlan>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Makes the next calls of a kind fail in turn; nil lets one call pass.
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

    /// Applies the plan to the calling thread's system calls during `body`.
    package func rule<Result>(_ body: () throws -> Result) rethrows -> Result {
      crl_fault_slot_set(Unmanaged.passUnretained(self).toOpaque())
      defer { crl_fault_slot_set(nil) }
      return try body()
    }

    /// Applies the plan to the calling thread's system calls until ``endRuling()`` on the same thread; the caller holds
    /// the plan.
    package func beginRuling() { crl_fault_slot_set(Unmanaged.passUnretained(self).toOpaque()) }
    /// Ends the use of a plan for the calling thread's system calls.
    package static func endRuling() { crl_fault_slot_set(nil) }
  }
#endif
