// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("The beginning and the end of serving Core Foundation", .timeLimit(.minutes(20)))
struct HostedEndTests {
  @Test("a loop serves Core Foundation's from the call on, once, and until serving is stopped", .rule(.m32))
  func beginsAndEnds() {
    let log = onNewThread {
      let loop = RunLoop.current
      var log = "\(loop.isServingCoreFoundation) \(loop.foundationRunLoop == nil)"
      for _ in 0..<2 { do { try loop.serveCoreFoundation() } catch { log += " \(error)" } }
      log += " \(loop.isServingCoreFoundation) \(loop.foundationRunLoop === Foundation.RunLoop.current)"
      log += " \(onNewThread { loop.isServingCoreFoundation })"
      for _ in 0..<2 { loop.stopServingCoreFoundation() }
      log += " \(loop.isServingCoreFoundation) \(loop.foundationRunLoop == nil)"
      return log
    }
    #expect(log == "false true true true true false true")
  }

  @Test("a loop that stopped serving Core Foundation's waits on its own, and leaves items there", .rule(.m32))
  func waitsByItself() {
    let log = hosted { rig in
      let source = CFSource { rig.write("S0") }
      source.add(to: rig)
      CFRunLoopSourceSignal(source.source)
      rig.loop.stopServingCoreFoundation()
      rig.run()
      rig.loop.add(Timer(timeInterval: 0.001, repeats: false) { _ in rig.write("T") }, forMode: .default)
      rig.run()
      try rig.loop.serveCoreFoundation()
      rig.run(returnAfterSourceHandled: true)
      source.invalidate()
    }
    #expect(log == "finished T finished S0 handledSource")
  }

  @Test("serving can end in a call-out of either loop, while the loop waits", .rule(.m2, .m32))
  func endsInCallOut() {
    let log = hosted { rig in
      rig.keepAlive()
      foundationTimer(after: 0.001) { _ in
        rig.write("F")
        rig.loop.stopServingCoreFoundation()
        foundationTimer(after: 0) { _ in rig.write("never") }
        rig.detach {
          waitUntil { rig.loop.isWaiting }
          rig.loop.perform {
            rig.write("B")
            rig.loop.stop()
          }
        }
      }
      rig.run()
      try rig.loop.serveCoreFoundation()
      rig.loop.perform {
        rig.loop.stopServingCoreFoundation()
        rig.loop.perform { rig.loop.stop() }
      }
      rig.run()
    }
    #expect(log == "F B stopped stopped")
  }

  @Test("serving can end in a run nested in a wait, and begin again there", .rule(.m2, .m32))
  func endsInNestedRun() {
    let log = hosted { rig in
      rig.keepAlive()
      foundationTimer(after: 0.001) { _ in
        rig.loop.perform {
          rig.loop.stopServingCoreFoundation()
          rig.loop.stop()
        }
        rig.run()
        foundationTimer(after: 0) { _ in
          rig.write("F")
          rig.loop.stop()
        }
        do { try rig.loop.serveCoreFoundation() } catch { rig.write("\(error)") }
      }
      rig.run()
    }
    #expect(log == "stopped F stopped")
  }

  @Test(
    "guests, loops on virtual time and ended loops cannot serve, and a serving loop cannot be a guest",
    .rule(.m7, .m32))
  func rejected() {
    let errors = onNewThread {
      let loop = RunLoop.current
      var errors: [RunLoopError?] = []
      do {
        let guest = try RunLoop.Guest()
        errors.append(failure { () throws(RunLoopError) in try loop.serveCoreFoundation() })
        guest.invalidate()
        try loop.serveCoreFoundation()
      } catch {
        errors.append(error as? RunLoopError)
      }
      errors.append(failure { () throws(RunLoopError) in _ = try RunLoop.Guest() })
      return errors
    }
    #expect(errors == [.isGuest, .hasHost])
    let virtual = onVirtualTime { _, loop in failure { () throws(RunLoopError) in try loop.serveCoreFoundation() } }
    #expect(virtual == .hasVirtualTime)
    #expect(!onVirtualTime { _, loop in loop.isServingCoreFoundation })
  }

  @Test(
    "another thread cannot start serving in either direction, and the error names both threads",
    .rule(.r18, .m15, .m32))
  func otherThread() {
    let errors = onNewThread {
      let loop = RunLoop.current
      let own = loop.threadDescription
      return onNewThread {
        let expected = RunLoopError.wrongThread(loop: own, caller: RunLoop.callingThreadDescription)
        let serving = failure { () throws(RunLoopError) in try loop.serveCoreFoundation() }
        var served: RunLoopError?
        do { try loop.servedByCoreFoundation {} } catch { served = error as? RunLoopError }
        return [serving == expected, served == expected]
      }
    }
    #expect(errors == [true, true])
  }

  @Test("serving ends with the thread, whether Foundation's loop is retained or not", .rule(.r115, .r117, .m32))
  func threadEnds() {
    let kept = Box<HostedRig?>(nil)
    for _ in 0..<20 {
      let log = hosted { rig in
        kept.value = rig
        rig.keepAlive()
        foundationTimer(after: 1000) { _ in rig.write("never") }
        rig.whenAsleep { $0.loop.stop() }
        rig.run()
      }
      #expect(log == "stopped")
      #expect(kept.value?.loop.isServingCoreFoundation == false)
      kept.value?.loop.wakeUp()
      #expect(kept.value?.loop.perform {} == false)
      if let kept = kept.value { CFRunLoopWakeUp(kept.cf) }
    }
  }

  @Test("a destructor of thread-specific data can still run our loop", .rule(.r115, .m32))
  func lateRun() {
    let log = Log()
    onNewThread {
      var key = pthread_key_t()
      pthread_key_create(&key) { pointer in
        guard let pointer else { return }
        let log = Unmanaged<Log>.fromOpaque(pointer).takeRetainedValue()
        foundationTimer(after: 0.001) { _ in log.write("F") }
        log.write("\(RunLoop.current.run(mode: .default, for: Duration.unlimited))")
      }
      pthread_setspecific(key, Unmanaged.passRetained(log).toOpaque())
      do { try RunLoop.current.serveCoreFoundation() } catch { log.write("\(error)") }
      RunLoop.current.run(mode: .default, for: Duration.zero)
    }
    #expect(log.text == "F finished")
  }

  @Test("no descriptor is left open", .rule(.r114, .m32))
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      func live() {
        let log = hosted { rig in
          rig.keepAlive("other")
          // Foundation never releases its timers or what their blocks capture.
          let fired = Counter()
          foundationTimer(after: 0) { _ in fired.add() }
          rig.run()
          rig.write("\(fired.value)")
          rig.run("other", for: .zero)
          rig.loop.stopServingCoreFoundation()
          try rig.loop.serveCoreFoundation()
          rig.run("other", for: .milliseconds(1))
        }
        #expect(log == "finished 1 timedOut timedOut")
      }
      live()
      let before = DescriptorCensus()
      for _ in 0..<20 { live() }
      let after = DescriptorCensus()
      #expect(before.isFollowed(by: after), "\(before); then \(after)")
    }
  }

  @Test("a forked child's loop does not serve Core Foundation's, and runs on its own", .rule(.m17, .m32))
  func fork() async {
    await #expect(processExitsWith: .success) {
      let log = hosted { rig in
        rig.keepAlive()
        rig.run(for: .milliseconds(1))
        let child = forkProcess()
        if child == 0 {
          let loop = RunLoop.current
          loop.perform { loop.stop() }
          let isWell = !loop.isServingCoreFoundation && loop.run(mode: .default, for: Duration.unlimited) == .stopped
          _exit(isWell ? 0 : 1)
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        rig.write("\(status)")
        rig.whenAsleep { $0.loop.stop() }
        rig.run()
      }
      #expect(log == "timedOut 0 stopped")
    }
  }
}
