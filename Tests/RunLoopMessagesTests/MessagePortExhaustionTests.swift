// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Glibc
  import TestSupport
  import Testing

  @testable import RunLoopCore
  @testable import RunLoopMessages

  @Suite("Message ports while no descriptors are available", .timeLimit(.minutes(20)))
  struct MessagePortExhaustionTests {
    @Test("a port without a descriptor, even to reject with, waits before it retries")
    func exhausted() throws {
      let directory = try PortDirectory()
      let outcome = onNewThread { () -> String in
        guard
          let port = try? MessagePort.Local(
            name: "a", directory: directory.place, handler: { MessagePort.Reply($0.bytes) }),
          (try? RunLoop.current.add(port, forMode: .default)) != nil
        else { return "not made" }
        let plan = FaultPlan()
        // Each attempt needs one descriptor to accept and one to reject with, and the reserve cannot be reopened.
        plan.plan(.accept, .fails(EMFILE), .fails(EMFILE), .fails(EMFILE), .fails(ENFILE), .fails(ENOMEM))
        plan.plan(.duplicate, .fails(EMFILE), .fails(EMFILE), .fails(EMFILE), .fails(EMFILE))
        let passes = Box(0)
        RunLoop.current.add(
          RunLoop.Observer(activities: .beforeTimers) { _, _ in passes.update { $0 += 1 } }, forMode: .default)
        let loop = RunLoop.current
        let asking = startThread { () -> [UInt8]? in
          defer { loop.perform { RunLoop.current.stop() } }
          let remote = try? MessagePort.Remote(name: "a", directory: directory.place)
          return (try? remote?.send(id: 1, bytes: [5], receiveTimeout: .unlimited))??.bytes
        }
        _ = plan.rule { loop.runUntilStopped() }
        let reply = asking.result() ?? []
        // Four attempts without a descriptor, each followed by a timer, and a few passes for the rest.
        return "\(reply) \(plan.isUsedUp) \(passes.value < 40) \(port.statistics.rejectedConnectionCount)"
      }
      #expect(outcome == "[5] true true 4")
    }

    @Test("a port that waits to retry does so in another loop when the thread of the first ends")
    func otherLoop() throws {
      let directory = try PortDirectory()
      let port = try MessagePort.Local(name: "a", directory: directory.place) { MessagePort.Reply($0.bytes) }
      let asking = startThread { () -> [UInt8]? in
        let remote = try? MessagePort.Remote(name: "a", directory: directory.place)
        return (try? remote?.send(id: 1, bytes: [6], receiveTimeout: .unlimited))??.bytes
      }
      let other = SourceRig.startLoop()
      let rejected = onNewThread { () -> Int in
        // The other loop joins after this one has found no descriptor.
        guard (try? RunLoop.current.add(port, forMode: .default)) != nil else { return -1 }
        let plan = FaultPlan()
        plan.plan(.accept, .fails(EMFILE), .fails(EMFILE))
        plan.rule {
          while port.statistics.rejectedConnectionCount == 0 {
            RunLoop.current.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true)
          }
        }
        guard (try? other.loop.add(port, forMode: .default)) != nil else { return -2 }
        return port.statistics.rejectedConnectionCount
      }
      #expect(rejected == 1)
      #expect(asking.result() == [6])
      port.invalidate()
      other.loop.perform { RunLoop.current.stop() }
      other.thread.join()
    }
  }
#endif
