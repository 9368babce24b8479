// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

#if DEBUG
  /// The faults that a test injects into its thread's system calls.
  package final class FaultPlan {
    package enum Fault: Sendable {
      /// The call is not made, and fails with this error number.
      case fails(Int32)
      /// The call is not made, and returns this result.
      case answers(Int32)
    }

    private var faults: [SystemCall: [Fault?]] = [:]

    package init() {}

    /// The number of times each call was made.
    package private(set) var counts: [SystemCall: Int] = [:]

    /// The calling thread's plan; the default is `nil`.
    package static var current: FaultPlan? {
      crl_fault_slot_get().map { Unmanaged<FaultPlan>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Appends faults for the next calls of a kind; `nil` lets a call pass.
    package func plan(_ call: SystemCall, _ faults: Fault?...) {
      self.faults[call, default: []] += faults
    }

    /// Whether every planned fault has been injected.
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

    /// Applies the plan, which the caller must hold, to the calling thread's system calls until it calls
    /// ``endRuling()``.
    package func beginRuling() { crl_fault_slot_set(Unmanaged.passUnretained(self).toOpaque()) }
    /// Stops applying a plan to the calling thread's system calls.
    package static func endRuling() { crl_fault_slot_set(nil) }
  }
#endif
