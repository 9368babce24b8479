// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing

@testable import RunLoopConformance

/// The kernel's behavior according to the model.
@Suite("The model: descriptors") struct ModelDescriptorTests {
  @Test("the descriptor that became ready first is reported first, and each once", .rule(.r11))
  func order() {
    var set = DescriptorSet()
    set.setTimer(to: 3, now: 0)
    set.expire(before: 3)
    #expect(set.firstReady(wakeUpIsReadable: false) == nil)
    set.note(.wakeUp)
    set.expire(before: 4)
    #expect(set.firstReady(wakeUpIsReadable: true) == .wakeUp)
    set.takeFirst()
    #expect(set.firstReady(wakeUpIsReadable: true) == .timer)
    set.takeFirst()
    // Edge-triggered: the descriptor, still readable, is not reported again.
    #expect(set.firstReady(wakeUpIsReadable: true) == nil)
  }

  @Test("a descriptor that something happens to again keeps its place")
  func place() {
    var set = DescriptorSet()
    set.note(.wakeUp)
    set.setTimer(to: 1, now: 2)
    set.note(.wakeUp)
    #expect(set.firstReady(wakeUpIsReadable: true) == .wakeUp)
  }

  @Test("a descriptor that was read elsewhere leaves the list in the next wait, and not before")
  func stale() {
    var set = DescriptorSet()
    set.note(.wakeUp)
    set.setTimer(to: 0, now: 0)
    // Read and written again without a wait in between: it keeps its place.
    #expect(set.firstReady(wakeUpIsReadable: true) == .wakeUp)
    // Read, polled and written again: it is now last.
    #expect(set.firstReady(wakeUpIsReadable: false) == .timer)
    set.note(.wakeUp)
    #expect(set.firstReady(wakeUpIsReadable: true) == .timer)
  }

  @Test("a timer that is rearmed or disarmed has not expired; one armed for a tick in the past expires at once")
  func arming() {
    var set = DescriptorSet()
    set.setTimer(to: 1, now: 1)
    #expect(set.firstReady(wakeUpIsReadable: false) == .timer && set.deadline == nil)
    set.setTimer(to: 5, now: 1)
    #expect(set.firstReady(wakeUpIsReadable: false) == nil && set.deadline == 5)
    set.expire(before: 6)
    set.disarmTimer()
    #expect(set.firstReady(wakeUpIsReadable: false) == nil && set.deadline == nil)
  }
}
