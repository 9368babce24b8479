// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopDisplay
import RunLoopTransactions

/// An application on a pseudo-terminal with nodes, which workers draw in real time.
@MainActor
final class NodeRig {
  private let stage: ApplicationRig
  private let meeting: Meeting
  private let workers = WorkerPool(name: "painter", threads: 2)
  private var row = 0
  let group: AsyncTransactionGroup

  var rig: Rig { stage.rig }
  var window: Window { stage.window }

  fileprivate init(_ stage: ApplicationRig, _ meeting: Meeting) {
    self.stage = stage
    self.meeting = meeting
    group = .of(stage.rig.loop)
    // The trace is off, because the time at which workers finish, and so the frame of their results, varies.
    stage.application.trace = nil
  }

  /// Creates a node that only workers draw.
  func node(_ content: any NodeContent) -> DisplayNode {
    let node = DisplayNode(
      content, frame: Rect(x: 0, y: row, width: 8, height: 1), group: group, workers: workers)
    node.mayDrawOnMainThread = false
    row += 1
    return node
  }

  func show(_ node: DisplayNode) { window.addSubview(node.view) }

  /// Runs the loop for a short virtual time.
  func runOnce() {
    stage.rig.loop.run(mode: .default, for: .milliseconds(20))
    stage.terminal.read()
  }

  /// Runs the loop until a condition holds, which may require workers.
  func run(until isTrue: () -> Bool) {
    let deadline = ContinuousClock.now + meeting.patience
    repeat {
      runOnce()
      sched_yield()
    } while !isTrue() && ContinuousClock.now < deadline
  }

  /// Adds observers that are called on the main actor with their orders.
  func observe(
    _ activities: RunLoop.Activity, orders: [Int],
    _ body: @escaping @MainActor @Sendable (Int, RunLoop.Activity) -> Void
  ) {
    for order in orders {
      let observer = RunLoop.Observer(activities: activities, order: order) { _, activity in
        MainActor.assumeIsolated { body(order, activity) }
      }
      stage.rig.loop.add(observer, forMode: .default)
    }
  }
}

extension Bench {
  /// Runs `body` with an application that shows nodes; must be called on the main thread.
  @MainActor
  func onNodes(_ body: (NodeRig) -> String) -> String {
    onApplication { stage in
      let result = body(NodeRig(stage, meeting))
      log.write(result)
      return result
    }
  }
}
