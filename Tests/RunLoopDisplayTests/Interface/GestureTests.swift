// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Gestures", .timeLimit(.minutes(20)))
@MainActor
struct GestureTests {
  /// A stage with one view, whose log contains touches, gestures, and actions with their times in milliseconds.
  private func perform(_ body: (Stage, View) throws -> Void) throws {
    try Stage.perform { stage in
      let view = View(frame: Rect(x: 0, y: 0, width: 40, height: 10))
      view.name = "view"
      stage.window.addSubview(view)
      stage.logged = { step in
        switch step {
        case .touches, .gesture: true
        default: false
        }
      }
      try body(stage, view)
    }
  }

  private func logger(_ stage: Stage, _ name: String) -> @MainActor (GestureRecognizer) -> Void {
    { recognizer in
      let shift = recognizer.location - recognizer.startLocation
      stage.log.write("\(name):\(recognizer.state):\(shift.x),\(shift.y)@\(Int(stage.time.elapsed / .milliseconds(1)))")
    }
  }

  @Test("a pan begins at a distance of two cells, is cancelled for the view before its action, and ends")
  func pan() throws {
    try perform { stage, view in
      view.addGestureRecognizer(PanGestureRecognizer(logger(stage, "pan")))
      stage.send(.press(5, 5), at: 10)
      stage.send(.drag(6, 5), at: 20)
      stage.send(.drag(7, 6), at: 30)
      stage.send(.drag(9, 6), at: 40)
      stage.send(.release(9, 7), at: 50)
      stage.send(.press(5, 5), .release(6, 5), at: 60)
      let log = try stage.record(until: 100)
      #expect(
        log == """
          began(view) moved(view) gesture:began cancelled(view) pan:began:2,1@30 gesture:changed pan:changed:4,1@40 \
          gesture:ended pan:ended:4,2@50 began(view) gesture:failed ended(view)
          """)
    }
  }

  @Test(
    "one read can contain a whole gesture, whose states are reported in order, and the next can be recognised"
  )
  func oneRead() throws {
    try perform { stage, view in
      view.addGestureRecognizer(PanGestureRecognizer(logger(stage, "pan")))
      stage.send(
        .press(0, 0), .drag(3, 0), .focus(true), .drag(4, 0), .focus(true), .drag(6, 0), .release(6, 1),
        .press(1, 1), .drag(1, 5), .release(1, 5), at: 10)
      let log = try stage.record(until: 100)
      #expect(
        log == """
          began(view) gesture:began cancelled(view) gesture:changed gesture:changed gesture:ended pan:began:3,0@10 \
          pan:changed:6,0@10 pan:ended:6,1@10 began(view) gesture:began cancelled(view) gesture:ended pan:began:0,4@10 \
          pan:ended:0,4@10
          """)
    }
  }

  @Test("changes by a tap's action apply to the next click, even one from the same read")
  func actionBeforeNextPress() throws {
    try perform { stage, view in
      stage.logged = { _ in false }
      view.addGestureRecognizer(
        TapGestureRecognizer { recognizer in
          stage.log.write("tap")
          recognizer.isEnabled = false
        })
      stage.send(.press(0, 0), .release(0, 0), .press(0, 0), .release(0, 0), .press(0, 0), .release(0, 0), at: 10)
      let log = try stage.record(until: 100)
      #expect(log == "tap")
    }
  }

  @Test("a tap fails when the mouse moves or another gesture is recognised first")
  func tapOrPan() throws {
    try perform { stage, view in
      stage.logged = { _ in false }
      view.addGestureRecognizer(TapGestureRecognizer(logger(stage, "tap")))
      view.addGestureRecognizer(PanGestureRecognizer(logger(stage, "pan")))
      stage.send(.press(0, 0), .release(1, 1), at: 10)
      stage.send(.press(0, 0), .drag(2, 0), .release(2, 0), at: 20)
      stage.send(.press(0, 0, .right), .release(0, 0, .right), at: 30)
      let log = try stage.record(until: 100)
      #expect(log == "tap:recognized:1,1@10 pan:began:2,0@20 pan:ended:2,0@20")
    }
  }

  @Test("a tap that waits for a double tap is recognised once the time for the second tap is over")
  func doubleTapTimeOut() throws {
    try perform { stage, view in
      let double = TapGestureRecognizer(tapsRequired: 2, logger(stage, "double"))
      let single = TapGestureRecognizer(logger(stage, "single"))
      single.require(toFail: double)
      view.addGestureRecognizer(single)
      view.addGestureRecognizer(double)
      stage.send(.press(0, 0), .release(0, 0), at: 10)
      stage.send(.press(0, 0), .release(0, 0), at: 1000)
      stage.send(.press(1, 0), .release(1, 0), at: 1299)
      // The next tap counts as a first one again.
      stage.send(.press(0, 0), .release(0, 0), at: 2000)
      let log = try stage.record(until: 3000)
      #expect(
        log == """
          began(view) ended(view) gesture:failed gesture:recognized single:recognized:0,0@310 began(view) ended(view) \
          began(view) gesture:recognized gesture:failed cancelled(view) double:recognized:0,0@1299 \
          began(view) ended(view) gesture:failed gesture:recognized single:recognized:0,0@2300
          """)
    }
  }

  /// Begins with the touch, and ends only when the touch does.
  private final class Press: GestureRecognizer {
    override func touchesBegan(_ touch: Touch) { state = .began }
  }

  @Test("a gesture released after its touch has ended, because it waited for others, ends at once and can begin again")
  func heldBeyondTouch() throws {
    try perform { stage, view in
      stage.logged = { _ in false }
      let double = TapGestureRecognizer(tapsRequired: 2, logger(stage, "double"))
      let press = Press(logger(stage, "press"))
      press.require(toFail: double)
      view.addGestureRecognizer(press)
      view.addGestureRecognizer(double)
      for start in [10, 1010] { stage.send(.press(0, 0), .release(0, 0), at: start) }
      let log = try stage.record(until: 2000)
      #expect(log == "press:began:0,0@310 press:ended:0,0@310 press:began:0,0@1310 press:ended:0,0@1310")
    }
  }

  @Test("without a failure requirement, both tap and double tap are recognised")
  func singleAndDouble() throws {
    try perform { stage, view in
      stage.logged = { _ in false }
      view.addGestureRecognizer(TapGestureRecognizer(logger(stage, "single")))
      view.addGestureRecognizer(TapGestureRecognizer(tapsRequired: 2, logger(stage, "double")))
      stage.send(.press(0, 0), .release(0, 0), at: 10)
      stage.send(.press(0, 0), .release(0, 0), at: 100)
      let log = try stage.record(until: 1000)
      #expect(log == "single:recognized:0,0@10 single:recognized:0,0@100 double:recognized:0,0@100")
    }
  }

  @Test("a pan that requires a long press to fail begins when the long press fails, and not if it is recognised")
  func panAfterLongPress() throws {
    try perform { stage, view in
      stage.logged = { _ in false }
      let press = LongPressGestureRecognizer(slack: 3, logger(stage, "press"))
      let pan = PanGestureRecognizer(logger(stage, "pan"))
      pan.require(toFail: press)
      view.addGestureRecognizer(press)
      view.addGestureRecognizer(pan)
      stage.send(.press(0, 0), at: 10)
      stage.send(.drag(2, 0), at: 20)
      stage.send(.drag(3, 0), at: 30)
      stage.send(.drag(4, 0), at: 40)
      stage.send(.drag(5, 0), at: 50)
      stage.send(.release(5, 0), at: 60)
      stage.send(.press(0, 0), at: 1000)
      stage.send(.drag(2, 0), at: 1010)
      stage.send(.drag(3, 0), at: 1600)
      stage.send(.release(3, 0), at: 1700)
      // The whole pan happens before the long press fails.
      stage.send(.press(0, 0), .drag(3, 0), .release(3, 0), at: 2000)
      let log = try stage.record(until: 3000)
      #expect(
        log == """
          pan:began:4,0@40 pan:changed:4,0@40 pan:changed:5,0@50 pan:ended:5,0@60 press:began:2,0@1500 \
          press:changed:3,0@1600 press:ended:3,0@1700 pan:began:3,0@2000 pan:ended:3,0@2000
          """)
    }
  }

  @Test("two gestures that allow each other are recognised in one touch, whichever of them named the other")
  func simultaneous() throws {
    for isPair in [false, true] {
      try perform { stage, view in
        stage.logged = { _ in false }
        let inner = View(frame: view.bounds)
        view.addSubview(inner)
        let (first, second) = (
          PanGestureRecognizer(logger(stage, "inner")), PanGestureRecognizer(logger(stage, "outer"))
        )
        inner.addGestureRecognizer(first)
        view.addGestureRecognizer(second)
        if isPair { second.recognizeSimultaneously(with: first) }
        stage.send(.press(0, 0), .drag(3, 0), .release(3, 0), at: 10)
        let log = try stage.record(until: 100)
        #expect(
          log
            == (isPair
              ? "inner:began:3,0@10 outer:began:3,0@10 inner:ended:3,0@10 outer:ended:3,0@10"
              : "inner:began:3,0@10 inner:ended:3,0@10"))
      }
    }
  }

  @Test("a recogniser added late gets no touch that began before the turn's gesture observer")
  func added() throws {
    try perform { stage, view in
      stage.logged = { _ in false }
      let tap = TapGestureRecognizer(logger(stage, "tap"))
      let button = Button("add") { view.addGestureRecognizer(tap) }
      stage.window.addSubview(button)
      button.becomeFirstResponder()
      stage.send(.type(.enter), .press(3, 3), .release(3, 3), at: 10)
      stage.send(.press(3, 3), .release(3, 3), at: 20)
      let log = try stage.record(until: 100)
      #expect(log == "tap:recognized:0,0@20")
    }
  }

  @Test(
    "a recogniser removed or disabled during its gesture reports the cancellation in that observer",
    arguments: 0..<3)
  func removed(how: Int) throws {
    try perform { stage, view in
      let pan = PanGestureRecognizer(logger(stage, "pan"))
      let other = View()
      view.addGestureRecognizer(pan)
      let button = Button("remove")
      button.action = {
        stage.log.write("remove")
        switch how {
        case 0: view.removeGestureRecognizer(pan)
        case 1: pan.isEnabled = false
        default: other.addGestureRecognizer(pan)
        }
      }
      button.frame = Rect(x: 30, y: 0, width: 1, height: 1)
      stage.window.addSubview(button)
      button.becomeFirstResponder()
      stage.send(.press(0, 0), .drag(3, 0), at: 10)
      stage.send(.type(.enter), .drag(4, 0), .wheel(.up, 0, 0), at: 20)
      stage.send(.drag(5, 0), .release(5, 0), at: 30)
      stage.send(.press(0, 0), .drag(3, 0), .release(3, 0), at: 40)
      let log = try stage.record(until: 100)
      #expect(
        log == """
          began(view) gesture:began cancelled(view) pan:began:3,0@10 remove gesture:changed gesture:cancelled \
          pan:changed:4,0@20 pan:cancelled:4,0@20 began(view) moved(view) ended(view)
          """)
    }
  }

  @Test("an action may remove its recogniser or view, and add another recogniser")
  func changesInAction() throws {
    try perform { stage, view in
      stage.logged = { _ in false }
      let write = logger(stage, "pan")
      let pan = PanGestureRecognizer { pan in
        write(pan)
        pan.view?.removeGestureRecognizer(pan)
        view.removeFromSuperview()
        stage.window.addGestureRecognizer(TapGestureRecognizer(self.logger(stage, "tap")))
      }
      view.addGestureRecognizer(pan)
      stage.send(.press(0, 0), .drag(3, 0), at: 10)
      stage.send(.release(5, 0), .press(0, 0), .release(0, 0), at: 20)
      let log = try stage.record(until: 100)
      #expect(log == "pan:began:3,0@10 pan:cancelled:3,0@10 tap:recognized:0,0@20")
    }
  }

  @Test("a gesture that does not cancel touches lets its view receive their end")
  func notCancelling() throws {
    try perform { stage, view in
      let tap = TapGestureRecognizer { _ in }
      tap.cancelsTouchesInView = false
      view.addGestureRecognizer(tap)
      stage.send(.press(0, 0), .release(0, 0), at: 10)
      let log = try stage.record(until: 100)
      #expect(log == "began(view) gesture:recognized ended(view)")
    }
  }
}
