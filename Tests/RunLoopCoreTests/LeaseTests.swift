// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import RunLoopCore

@Suite("The lease")
struct LeaseTests {
  // M22
  @Test("nobody inside: who closes it releases, and nobody enters any more")
  func closedEmpty() {
    let lease = Shared()
    #expect(lease.isOpen)
    #expect(lease.close() == .release)
    #expect(!lease.isOpen)
    #expect(!lease.enter())
    #expect(lease.close() == .already)
  }

  // M22
  @Test("somebody inside: who leaves last releases")
  func closedWithin() {
    let lease = Shared()
    #expect(lease.enter())
    #expect(lease.enter())
    #expect(lease.close() == .later)
    #expect(!lease.isOpen)
    #expect(!lease.enter())
    #expect(lease.close() == .already)
    #expect(!lease.leave())
    #expect(lease.leave())
    #expect(lease.close() == .already)
  }

  // M22
  @Test("entered and left before, it is as new")
  func leftBefore() {
    let lease = Shared()
    for _ in 0..<3 {
      #expect(lease.enter())
      #expect(!lease.leave())
    }
    #expect(lease.isOpen)
    #expect(lease.close() == .release)
  }

  // M22
  @Test("of many threads one is told to release, when nobody is inside", .timeLimit(.minutes(5)))
  func threads() {
    for _ in 0..<100 {
      let shared = Shared()
      let threads = (0..<4).map { index in
        startThread {
          var count = 0
          while shared.enter() {
            // What the lease guards.
            if let guarded = shared.guarded { precondition(guarded == 1, "released while somebody is inside") }
            count += 1
            if shared.leave() { shared.release() }
            if count == 20 * (index + 1), index > 1, shared.close() == .release { shared.release() }
          }
        }
      }
      for thread in threads { thread.result() }
      #expect(shared.releases.load(ordering: .relaxed) == 1)
      #expect(shared.guarded == nil)
    }
  }
}

private final class Shared: @unchecked Sendable {
  // Sendable: the lease guards what is read inside it and released once.
  private let lease = Lease()
  let releases = Atomic<Int>(0)
  private(set) var guarded: Int? = 1

  var isOpen: Bool { lease.isOpen }
  func enter() -> Bool { lease.enter() }
  func leave() -> Bool { lease.leave() }
  func close() -> Lease.Closing { lease.close() }

  func release() {
    releases.wrappingAdd(1, ordering: .relaxed)
    guarded = nil
  }
}
