// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Glibc
  import TestSupport
  import Testing

  @testable import RunLoopCore
  @testable import RunLoopMessages

  @Suite("Message ports when descriptors stay exhausted", .timeLimit(.minutes(20)))
  struct MessagePortExhaustionTests {
    @Test("a port that has no descriptor, not even to refuse with, waits before it tries again")
    func exhausted() throws {
      let directory = try PortDirectory()
      let outcome = onNewThread { () -> String in
        guard
          let port = try? MessagePort.Local(
            name: "a", directory: directory.place, handler: { MessagePort.Reply($0.bytes) }),
          (try? RunLoop.current.add(port, forMode: .default)) != nil
        else { return "not made" }
        let plan = FaultPlan()
        // Each look needs one to accept with, one to refuse with; and the reserve cannot be had again.
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
        // Four looks that found nothing to accept with, each with a timer of its own, and a few passes for the rest.
        return "\(reply) \(plan.isUsedUp) \(passes.value < 40) \(port.statistics.rejectedConnectionCount)"
      }
      #expect(outcome == "[5] true true 4")
    }

    @Test("a port that waits to try again does so in another loop when the thread of the first ends")
    func otherLoop() throws {
      let directory = try PortDirectory()
      let port = try MessagePort.Local(name: "a", directory: directory.place) { MessagePort.Reply($0.bytes) }
      let asking = startThread { () -> [UInt8]? in
        let remote = try? MessagePort.Remote(name: "a", directory: directory.place)
        return (try? remote?.send(id: 1, bytes: [6], receiveTimeout: .unlimited))??.bytes
      }
      let other = SourceRig.startLoop()
      let rejected = onNewThread { () -> Int in
        // The other loop comes in when this one has found that there is no descriptor.
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
