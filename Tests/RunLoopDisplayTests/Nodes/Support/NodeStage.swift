// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopTransactions
import TestSupport

@testable import RunLoopDisplay

/// A window with nodes on a test device, whose main loop runs on virtual time.
@MainActor
final class NodeStage {
  let time: VirtualTime
  let device: FakeDevice
  let window = Window()
  let application: Application
  let log = Log()
  nonisolated let group: AsyncTransactionGroup
  nonisolated let workers = WorkerPool(name: "painter", threads: 2)
  /// The thread that acts as the main thread.
  nonisolated let thread = RunLoop.callingThreadID

  /// Runs a test's body on the main actor's thread, as if it were the main thread.
  static func perform(
    width: Int = 12, height: Int = 4, _ body: (NodeStage) throws -> Void
  ) throws {
    try VirtualTime.asMain { time in
      let stage = NodeStage(time, FakeDevice(width: width, height: height))
      try stage.application.start()
      try stage.turn()
      try body(stage)
      stage.application.finish()
    }
  }

  private init(_ time: VirtualTime, _ device: FakeDevice) {
    self.time = time
    self.device = device
    application = Application(device: device, window: window, frameInterval: .zero)
    group = .main
  }

  /// Makes a node that uses the test's workers and loop, from any thread.
  nonisolated func node(
    _ content: any NodeContent = EmptyContent(), x: Int = 0, y: Int = 0, width: Int = 5, height: Int = 1
  ) -> DisplayNode {
    DisplayNode(content, frame: Rect(x: x, y: y, width: width, height: height), group: group, workers: workers)
  }

  /// Makes a node that only workers draw.
  nonisolated func workersNode(_ content: any NodeContent, x: Int = 0, y: Int = 0, width: Int = 5) -> DisplayNode {
    let node = node(content, x: x, y: y, width: width)
    node.mayDrawOnMainThread = false
    return node
  }

  /// Lets the loop do its current work and get to its wait.
  func turn() throws { try time.advance(by: .milliseconds(1)) }

  /// Runs turns until a condition holds, which may depend on other threads.
  func turns(until condition: () -> Bool) throws {
    while !condition() { try turn() }
  }

  var text: String { device.text }
}

/// Content that reports where and what it draws, and may wait before that.
struct Drawn: NodeContent {
  var text: String
  var log: Log?
  var hold: Hold?
  var drawings = Counter()
  /// Called during the drawing.
  var work: @Sendable (Cancellation) -> Void = { _ in }

  init(_ text: String, log: Log? = nil, hold: Hold? = nil, work: @escaping @Sendable (Cancellation) -> Void = { _ in })
  {
    self.text = text
    self.log = log
    self.hold = hold
    self.work = work
  }

  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    drawings.add()
    log?.write("draw:\(text)")
    hold?.occupy()
    work(cancellation)
    canvas.draw(text, at: .zero)
  }
}
