// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("From the device to the frame", .timeLimit(.minutes(20)))
@MainActor
struct TurnTests {
  @Test("the first frame shows the window without any input")
  func firstFrame() throws {
    try Stage.perform { stage in
      stage.window.addSubview(Label("hello", frame: Rect(x: 3, y: 1, width: 8, height: 1)))
      let end = try stage.run(until: 1)
      #expect(end == .terminated)
      #expect(stage.device.text == "\n   hello")
      #expect(stage.device.presentations == 1 && !stage.device.isOpen)
      #expect(stage.log.text == "E BW layout draw commit AW X")
    }
  }

  @Test(
    "a click is read by source 1 and handled by source 0, and the next wait's frame shows its effects"
  )
  func click() throws {
    try Stage.perform { stage in
      let button = Button("ok", frame: Rect(x: 0, y: 0, width: 4, height: 1))
      let label = Label(frame: Rect(x: 0, y: 1, width: 10, height: 1))
      button.name = "button"
      let tap = TapGestureRecognizer { _ in label.text = "tapped" }
      tap.name = "tap"
      button.addGestureRecognizer(tap)
      stage.window.addSubview(button)
      stage.window.addSubview(label)
      stage.application.pipeline.add(.init(name: "async", order: TurnOrder.afterCommit) { stage.log.write("after") })
      stage.send(.press(1, 0), .release(1, 0), at: 100)
      let log = try stage.record(until: 200)
      #expect(
        log == """
          AW S1 S0:2 began(button) gesture:recognized cancelled(button) BW action:tap:recognized draw:2 commit after
          """)
      #expect(stage.device.text == "ok\ntapped")
    }
  }

  @Test(
    "a turn's order is action, layout, drawing and commit, then the asynchronous commit, and the pool last")
  func wholeTurn() throws {
    final class Box: View {
      var log: Log?
      override func layoutSubviews() { log?.write("layoutSubviews") }
      override func draw(_ canvas: inout Canvas) { log?.write("drawing") }
    }
    try Stage.perform { stage in
      let box = Box(frame: Rect(x: 0, y: 0, width: 4, height: 1))
      box.name = "box"
      box.log = stage.log
      let tap = TapGestureRecognizer { _ in
        let transaction = AsyncTransactionGroup.main.transaction
        TurnPool.current?.onEndOfTurn { stage.log.write(transaction.state == .open ? "pop before async" : "async pop") }
        box.setNeedsDisplay()
        box.setNeedsLayout()
      }
      tap.name = "tap"
      box.addGestureRecognizer(tap)
      stage.window.addSubview(box)
      stage.send(.press(1, 0), .release(1, 0), at: 100)
      let log = try stage.record(until: 200)
      // The turn's transaction woke the loop when it was made, which causes the second pass.
      #expect(
        log == """
          AW S1 S0:2 began(box) gesture:recognized cancelled(box) BW action:tap:recognized layoutSubviews layout \
          drawing draw commit:0 async pop AW BW
          """)
    }
  }

  @Test("from the read to the frame there are at most two passes")
  func twoPasses() throws {
    try Stage.perform { stage in
      let field = TextField(frame: Rect(x: 0, y: 0, width: 8, height: 1))
      stage.window.addSubview(field)
      field.becomeFirstResponder()
      stage.send(.type(.character("x")), at: 100)
      let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in stage.log.write("pass") }
      stage.at(0) { RunLoop.main.add(observer, forMode: .default) }
      // A pass that performed a source does not wait; the second pass does.
      let log = try stage.record(until: 200)
      #expect(log == "AW S1 pass S0:1 pass BW draw commit")
    }
  }

  @Test("events read together are handled in one call of source 0, and drags of one button are merged")
  func merging() throws {
    try Stage.perform { stage in
      let view = View(frame: Rect(x: 0, y: 0, width: 40, height: 10))
      view.name = "view"
      stage.window.addSubview(view)
      stage.send(.press(1, 1), .drag(2, 1), .drag(3, 1), .drag(4, 1), .release(4, 1), at: 100)
      let log = try stage.record(until: 200)
      #expect(log == "AW S1 S0:3 began(view) moved(view) ended(view) BW")
    }
  }

  @Test(
    "wheel turns and drags of two reads before source 0 are merged with the directly preceding event")
  func queue() {
    var queue = EventQueue()
    let events: [InputEvent] = [
      .press(0, 0), .drag(1, 0), .drag(2, 0), .drag(3, 0, .right), .drag(4, 0, .right), .drag(5, 0), .type(.enter),
      .drag(6, 0),
      .wheel(.up, 0, 0), .wheel(.up, 0, 0), .type(.enter), .type(.enter), .size(3, 3), .size(4, 4), .drag(7, 0),
      .drag(8, 0),
    ]
    for event in events { queue.append(.input(event)) }
    queue.append(.interruption)
    queue.append(.input(.drag(9, 0)))
    var left: [EventQueue.Entry] = []
    while let entry = queue.takeFirst() { left.append(entry) }
    let merged: [InputEvent] = [
      .press(0, 0), .drag(2, 0), .drag(4, 0, .right), .drag(5, 0), .type(.enter), .drag(6, 0), .wheel(.up, 0, 0),
      .wheel(.up, 0, 0), .type(.enter), .type(.enter), .size(3, 3), .size(4, 4), .drag(8, 0),
    ]
    #expect(left == merged.map { .input($0) } + [.interruption, .input(.drag(9, 0))])
    #expect(queue.count == 0)
  }

  @Test("a drag does not replace one that was already taken out")
  func takenOut() {
    var queue = EventQueue()
    queue.append(.input(.drag(1, 0)))
    #expect(queue.takeFirst() == .input(.drag(1, 0)))
    queue.append(.input(.drag(2, 0)))
    #expect(queue.count == 1 && queue.takeFirst() == .input(.drag(2, 0)) && queue.takeFirst() == nil)
  }

  @Test("input is also handled in the mode for events, and no commit happens there")
  func eventMode() throws {
    try Stage.perform { stage in
      let label = Label("a", frame: Rect(x: 0, y: 0, width: 8, height: 1))
      stage.window.addSubview(label)
      try stage.application.start()
      RunLoop.main.run(mode: .default, for: 0.001)
      stage.log.clear()
      stage.device.send([.press(0, 0)])
      label.text = "b"
      RunLoop.main.run(mode: .eventReceive, for: 0.001)
      #expect(stage.log.text == "S1 S0:1 began(Label)" && stage.device.text == "a")
      RunLoop.main.run(mode: .default, for: 0.1)
      #expect(stage.device.text == "b")
      stage.application.finish()
    }
  }

  @Test("the application's start mode has the commit but no input")
  func initializationMode() throws {
    try Stage.perform { stage in
      stage.window.addSubview(Label("a", frame: Rect(x: 0, y: 0, width: 8, height: 1)))
      try stage.application.start()
      stage.device.send([.press(0, 0)])
      RunLoop.main.keepAlive(.initialization)
      RunLoop.main.run(mode: .initialization, for: 0.001)
      #expect(stage.log.text == "layout draw commit" && stage.device.text == "a")
      stage.application.finish()
    }
  }

  @Test("many events of one read are handled in parts, with the loop's other work in between")
  func eventBudget() throws {
    final class Slow: Window {
      var time: VirtualTime?
      override func keyPressed(_ key: KeyEvent) { time?.spend(.milliseconds(3)) }
    }
    let window = Slow()
    try Stage.perform(window: window) { stage in
      window.time = stage.time
      stage.logged = { step in
        if case .source0 = step { true } else { false }
      }
      stage.at(10) { stage.device.send(Array(repeating: .type(.character("a")), count: 10)) }
      let log = try stage.record(until: 200)
      #expect(log.split(separator: " ").count == 4, "\(log)")
    }
  }
}
