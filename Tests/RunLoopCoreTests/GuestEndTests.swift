// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The end of a guest", .timeLimit(.minutes(20)))
struct GuestEndTests {
  @Test("a guest ends with its thread, without a call-out, even if it is retained", .rule(.r115, .m28))
  func threadEnds() {
    let kept = Box<RunLoop.Guest?>(nil)
    let log = record { _, loop, log in
      do {
        let guest = try RunLoop.Guest()
        guest.turn(log)
        kept.value = guest
      } catch {
        log.write("\(error)")
      }
    }
    #expect(log == "| E BT BS BW finished")
    #expect(kept.value?.isValid == false)
    #expect(kept.value?.descriptor == -1)
    #expect(kept.value?.service() == .finished)
    kept.value?.invalidate()
    kept.value?.loop.wakeUp()
    #expect(kept.value?.loop.perform {} == false)
  }

  @Test("the loop holds its guest until it is invalid, and nothing holds it then", .rule(.r22, .m22, .m28))
  func held() {
    let isReleased = onVirtualTime { _, loop in
      do {
        var guest: RunLoop.Guest? = try RunLoop.Guest()
        let weakly = guest.map(WeakBox.init)
        guest?.service()
        guest = nil
        guard let held = weakly?.object else { return false }
        held.invalidate()
        return true
      } catch {
        return false
      }
    }
    #expect(isReleased)
    let kept = Box<WeakBox<RunLoop.Guest>?>(nil)
    onVirtualTime { _, loop in
      kept.value = (try? RunLoop.Guest()).map(WeakBox.init)
      kept.value?.object?.invalidate()
    }
    #expect(kept.value != nil && kept.value?.object == nil)
  }

  @Test("guests leave no descriptor open, whichever way they end", .rule(.r114, .m28))
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      func live() {
        onNewThread {
          do {
            let pipe = try RawPipe()
            let outer = try RunLoop.Guest()
            outer.loop.watch(pipe.reading)
            outer.service()
            let inner = try RunLoop.Guest(mode: "inner", signalsDeadlines: true)
            inner.loop.after(.seconds(1000), mode: "inner") { _ in }
            inner.service()
            inner.invalidate()
            outer.invalidate()
            let left = try RunLoop.Guest(signalsDeadlines: true)
            left.service()
          } catch {
            Issue.record("\(error)")
          }
        }
      }
      live()
      let before = DescriptorCensus()
      for _ in 0..<20 { live() }
      let after = DescriptorCensus()
      #expect(before.isFollowed(by: after), "\(before); then \(after)")
    }
  }

  #if DEBUG
    @Test(
      "a guest is not created if its descriptors cannot be", .rule(.r114, .m7, .m28),
      arguments: [
        (SystemCall.epollCreate, 0), (.eventCreate, 0), (.timerCreate, 0), (.epollControl, 0), (.epollControl, 1),
      ])
    func fault(call: SystemCall, passed: Int) {
      let log = record { _, loop, log in
        let plan = FaultPlan()
        for _ in 0..<passed { plan.plan(call, nil) }
        plan.plan(call, .fails(EMFILE))
        let rejection: RunLoopError? = plan.rule {
          failure { () throws(RunLoopError) in _ = try RunLoop.Guest(signalsDeadlines: true) }
        }
        log.write("\(plan.isUsedUp) \(rejection == .cannotBeHosted(SystemError(call: call.rawValue, number: EMFILE)))")
        log.write("\(loop.currentMode == nil)")
        loop.perform { log.write("B") }
        loop.run(log)
      }
      #expect(log == "true true true E BT BS B BW AW X timedOut")
    }

    @Test(
      "descriptors and dates that a guest cannot watch are checked in every turn", .rule(.m7, .m28),
      arguments: [SystemCall.epollControl, .timerSet])
    func watchFault(call: SystemCall) throws {
      let pipe = try RawPipe()
      let log = host(signalsDeadlines: true) { _, loop, guest, log in
        loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
        loop.after(.seconds(1 << 30)) { _ in }
        let plan = FaultPlan()
        plan.plan(call, .fails(ENOMEM))
        plan.rule { guest.turn(log) }
        log.write("\(plan.isUsedUp) \(guest.isReadable)")
        pipe.write()
        plan.plan(call, .fails(ENOMEM))
        plan.rule { guest.turn(log) }
        log.write("\(plan.isUsedUp) \(guest.isReadable)")
        guest.turn(log)
        log.write("\(guest.isReadable)")
      }
      #expect(
        log == "| E BT BS BW timedOut true true | AW BT BS D[7] BW handledSource true true | timedOut false X")
    }
  #endif

  @Test("another thread cannot service a guest", .rule(.r18, .m15, .m28))
  func otherThread() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      onVirtualTime { _, _ in
        guard let guest = try? RunLoop.Guest() else { return }
        onNewThread { _ = guest.service() }
      }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("cannot be run by thread"), "\(text)")
  }
}
