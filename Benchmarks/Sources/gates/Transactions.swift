// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// The object that a turn's pool releases.
final class Turned: Sendable {}

/// The cost of a turn of a loop that has a pool, a pipeline or a queue, and uses it.
let transactionGates: [Gate] = [
  Gate(name: "turn that marks and commits", count: 1000) { count, measure in
    onLoop { loop in
      let pipeline = CommitPipeline(loop: loop, frameInterval: .zero)
      pipeline.add(.init(name: "commit") {})
      makeTurns(count, measure, loop) { pipeline.setNeedsCommit() }
    }
  },
  // Ten changes that result in one commit.
  Gate(name: "turn with ten marks and five stages", count: 1000) { count, measure in
    onLoop { loop in
      let pipeline = CommitPipeline(loop: loop, frameInterval: .zero)
      for order in [
        TurnOrder.updates, TurnOrder.beforeCommit, TurnOrder.commit, TurnOrder.commit, TurnOrder.afterCommit,
      ] {
        pipeline.add(.init(name: "stage", order: order) {})
      }
      makeTurns(count, measure, loop) { for _ in 0..<10 { pipeline.setNeedsCommit() } }
    }
  },
  Gate(name: "turn with a pool that keeps ten objects", count: 1000) { count, measure in
    onLoop { loop in
      TurnPool.install(in: loop)
      let object = Turned()
      makeTurns(count, measure, loop) { for _ in 0..<10 { TurnPool.current?.keep(object) } }
    }
  },
  Gate(name: "turn that consumes an element of a queue", count: 1000) {
    count, measure in
    onLoop { loop in
      let queue = RunLoopQueue<Int>(loop: loop, unique: false) { _, _ in }
      makeTurns(count, measure, loop) { queue.enqueue(1) }
      withExtendedLifetime(queue) {}
    }
  },
]

/// Makes turns of a loop, each of which reaches its wait, with some work in each.
private func makeTurns(_ count: Int, _ measure: Measure, _ loop: RunLoop, _ work: @escaping @Sendable () -> Void) {
  let turns = Turns(count, measure) { loop.stop() }
  loop.add(
    RunLoop.Observer(activities: .beforeTimers) { _, _ in
      work()
      turns.next()
      // The following wait does not sleep.
      loop.wakeUp()
    }, forMode: .default)
  loop.add(RunLoop.Source {}, forMode: .default)
  loop.runUntilStopped()
}
