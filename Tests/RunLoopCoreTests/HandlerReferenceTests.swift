// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestRules
import Testing

@testable import RunLoopCore

@Suite("The reference")
struct HandlerReferenceTests {
  @Test("with no thread inside, the one that closes the reference releases, and none enters again", .rule(.m22))
  func closedEmpty() {
    let reference = Shared()
    #expect(reference.isOpen)
    #expect(reference.close() == .release)
    #expect(!reference.isOpen)
    #expect(!reference.enter())
    #expect(reference.close() == .already)
  }

  @Test("with threads inside, the last one to leave releases", .rule(.m22))
  func closedWithin() {
    let reference = Shared()
    #expect(reference.enter())
    #expect(reference.enter())
    #expect(reference.close() == .later)
    #expect(!reference.isOpen)
    #expect(!reference.enter())
    #expect(reference.close() == .already)
    #expect(!reference.leave())
    #expect(reference.leave())
    #expect(reference.close() == .already)
  }

  @Test("after entering and leaving, the reference is as new", .rule(.m22))
  func leftBefore() {
    let reference = Shared()
    for _ in 0..<3 {
      #expect(reference.enter())
      #expect(!reference.leave())
    }
    #expect(reference.isOpen)
    #expect(reference.close() == .release)
  }

  @Test("exactly one of many threads releases, when none is inside", .rule(.m22), .timeLimit(.minutes(20)))
  func threads() {
    for _ in 0..<100 {
      let shared = Shared()
      let threads = (0..<4).map { index in
        startThread {
          var count = 0
          while shared.enter() {
            // The state that the reference guards.
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
  // Sendable: the reference guards the state that is read inside it and released once.
  private let reference = HandlerReference()
  let releases = Atomic<Int>(0)
  private(set) var guarded: Int? = 1

  var isOpen: Bool { reference.isOpen }
  func enter() -> Bool { reference.enter() }
  func leave() -> Bool { reference.leave() }
  func close() -> HandlerReference.Closing { reference.close() }

  func release() {
    releases.wrappingAdd(1, ordering: .relaxed)
    guarded = nil
  }
}
