// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The end of an application", .timeLimit(.minutes(20)))
@MainActor
struct EndTests {
  @Test("what serves an application leaves the main loop with it: no stage is performed, and nothing is kept")
  func leaves() throws {
    try VirtualTime.asMain { time in
      let log = Log()
      var device: FakeDevice? = FakeDevice()
      let pipeline: CommitPipeline
      weak var application: Application?
      weak var window: Window?
      do {
        let made = Application(device: device!, window: Window())
        (application, window, pipeline) = (made, made.window, made.pipeline)
        pipeline.add(.init(name: "a client's") { log.write("stage") })
        time.at(.milliseconds(10)) { [weak made] in MainActor.assumeIsolated { made?.terminate() } }
        try made.run()
        made.loop.run(mode: .default, for: .milliseconds(10))
        #expect(log.text == "stage")
      }
      weak var gone: FakeDevice?
      gone = device
      device = nil
      #expect(application == nil && window == nil && gone == nil)
      pipeline.setNeedsCommit()
      pipeline.whenCommitted { log.write("\($0.cause)") }
      try time.advance(by: .milliseconds(100))
      #expect(log.text == "stage invalidated")
    }
  }

  @Test("a run within the application's own takes the stop, and the application ends when that run has ended")
  func nestedRun() throws {
    try Stage.perform { stage in
      let loop = stage.application.loop
      stage.logged = { _ in false }
      stage.at(50) {
        loop.perform {
          let result = loop.run(mode: .default, for: .seconds(1))
          MainActor.assumeIsolated { stage.log.write("\(result)") }
        }
      }
      stage.at(60) { stage.application.terminate() }
      stage.at(300) {
        stage.log.write("late")
        loop.stop()
      }
      try stage.run(until: 200)
      #expect(stage.log.text == "stopped")
    }
  }

  @Test("a gesture that is being recognised reports that it was cancelled, and what its action shows is seen")
  func gesture() throws {
    try Stage.perform { stage in
      let label = Label(frame: Rect(x: 0, y: 0, width: 20, height: 1))
      let pan = PanGestureRecognizer { label.text = "\($0.state)" }
      stage.window.addSubview(label)
      label.addGestureRecognizer(pan)
      stage.send(.press(3, 0), .drag(6, 0), at: 100)
      stage.at(150) { #expect(stage.device.text == "began") }
      try stage.run(until: 200)
      #expect(stage.device.text == "cancelled")
    }
  }

  @Test(
    "completion blocks that begin a transaction each end with the application, the last in a later turn of the loop")
  func chain() throws {
    try Stage.perform { stage in
      var count = 0
      @MainActor func next() {
        count += 1
        // So many are no chain without an end.
        guard count < 1000 else { return }
        Transaction.begin()
        Transaction.setCompletionBlock { next() }
        Transaction.commit()
      }
      stage.at(95) { next() }
      try stage.run(until: 200)
      // One for a frame, of which the last is the end's, and the one that waited for the next.
      let shown = count
      #expect((8...11).contains(shown), "\(shown)")
      stage.application.loop.run(mode: .default, for: .zero)
      #expect((shown + 1..<shown + 10).contains(count))
    }
  }

  @Test("that was suspended is no reason for the next run to show nothing")
  func suspended() throws {
    try Stage.perform { stage in
      let label = Label("once", frame: Rect(x: 0, y: 0, width: 20, height: 1))
      stage.window.addSubview(label)
      stage.at(50) { stage.device.suspend() }
      try stage.run(until: 100)
      #expect(stage.device.text == "once")
      label.text = "again"
      try stage.run(until: 200)
      #expect(stage.device.text == "again")
    }
  }

  @Test("the mode is the default one again, and its owners are notified")
  func mode() throws {
    try Stage.perform { stage in
      let owner = Log()
      var modes: [RunLoop.Mode] = []
      stage.application.modeDidChange = { modes.append($0) }
      stage.at(10) { stage.application.push(.tracking, for: owner) }
      try stage.run(until: 20)
      #expect(modes == [.tracking, .default] && stage.application.mode == .default)
    }
  }
}
