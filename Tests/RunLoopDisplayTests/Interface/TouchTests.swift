// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Touches", .timeLimit(.minutes(20)))
@MainActor
struct TouchTests {
  private func perform(_ body: (Stage, View) throws -> Void) throws {
    try Stage.perform { stage in
      let view = View(frame: Rect(x: 2, y: 2, width: 20, height: 6))
      view.name = "view"
      stage.window.name = "window"
      stage.window.addSubview(view)
      stage.logged = { step in if case .touches = step { true } else { false } }
      try body(stage, view)
    }
  }

  @Test("a touch belongs to the view that was hit, wherever it moves, and each button has its own touch")
  func buttons() throws {
    try perform { stage, view in
      stage.send(
        .press(3, 3), .drag(30, 9), .press(0, 0, .right), .drag(31, 9), .release(0, 0, .right), .release(99, -9),
        .press(1, 1, .middle), .release(1, 1, .middle), at: 10)
      try stage.run(until: 20)
      #expect(
        stage.log.text
          == "began(view) moved(view) began(window) moved(view) ended(window) ended(view) began(window) ended(window)")
    }
  }

  @Test("drags and releases without a press are ignored, and a new press cancels one whose release was lost")
  func lost() throws {
    try perform { stage, view in
      stage.send(.drag(3, 3), .release(3, 3), .press(3, 3), .press(4, 4), .release(4, 4), .release(4, 4), at: 10)
      try stage.run(until: 20)
      #expect(stage.log.text == "began(view) cancelled(view) began(view) ended(view)")
    }
  }

  @Test("a touch is cancelled once when its view leaves the window, alone or with others, and later events are ignored")
  func leaving() throws {
    for isOuter in [false, true] {
      try perform { stage, view in
        let inner = View(frame: Rect(x: 0, y: 0, width: 5, height: 5))
        inner.name = "inner"
        view.addSubview(inner)
        stage.send(.press(3, 3), at: 10)
        stage.at(20) { (isOuter ? view : inner).removeFromSuperview() }
        stage.send(.drag(4, 4), .release(4, 4), at: 30)
        try stage.run(until: 40)
        #expect(stage.log.text == "began(inner) cancelled(inner)")
      }
    }
  }

  @Test("a view that moves within its window keeps its touch")
  func moving() throws {
    try perform { stage, view in
      let other = View(frame: stage.window.bounds)
      stage.window.addSubview(other)
      stage.window.bringSubviewToFront(view)
      stage.send(.press(3, 3), at: 10)
      stage.at(20) { other.addSubview(view) }
      stage.send(.release(4, 4), at: 30)
      try stage.run(until: 40)
      #expect(stage.log.text == "began(view) ended(view)")
    }
  }

  @Test("a resize during a drag cancels the touch and the gesture, within source 0")
  func resize() throws {
    try perform { stage, view in
      stage.logged = { step in
        switch step {
        case .touches, .resize, .source0, .action: true
        default: false
        }
      }
      let pan = PanGestureRecognizer { _ in }
      pan.name = "pan"
      view.addGestureRecognizer(pan)
      stage.send(.press(3, 3), .drag(6, 3), at: 10)
      stage.send(.drag(7, 3), .size(1, 1), .drag(0, 0), .release(0, 0), at: 20)
      stage.send(.press(0, 0), .size(1, 1), .release(0, 0), at: 30)
      try stage.run(until: 40)
      #expect(
        stage.log.text == """
          S0:2 began(view) cancelled(view) action:pan:began S0:4 resize:1x1 action:pan:changed action:pan:cancelled \
          S0:3 began(window) resize:1x1 ended(window)
          """)
      #expect(stage.window.frame.size == Size(width: 1, height: 1))
    }
  }

  @Test("a suspension cancels touches, and afterwards the screen is redrawn in full")
  func suspension() throws {
    try perform { stage, view in
      stage.send(.press(3, 3), at: 10)
      stage.send(.type(.character("z"), .control), at: 20)
      stage.at(25) { #expect(stage.device.suspensions == 1) }
      stage.at(28) { stage.window.addSubview(Label("new", frame: Rect(x: 0, y: 0, width: 3, height: 1))) }
      stage.at(29) { #expect(stage.device.text == "") }
      stage.at(30) { stage.device.resume() }
      stage.send(.drag(4, 4), .release(4, 4), at: 40)
      try stage.run(until: 60)
      #expect(stage.log.text == "began(view) cancelled(view)" && stage.device.text == "new")
    }
  }

  @Test("a stop that was not announced, as by SIGSTOP, cancels touches when the process continues")
  func unannouncedStop() throws {
    try perform { stage, view in
      stage.send(.press(3, 3), at: 10)
      stage.at(30) { stage.device.resume() }
      stage.send(.release(4, 4), at: 40)
      try stage.run(until: 60)
      #expect(stage.log.text == "began(view) cancelled(view)")
    }
  }

  @Test("a view that its own code returns to its window while it is moved to another one arrives there")
  func returning() {
    final class Returning: View {
      weak var home: Window?
      override func didMoveToWindow() {
        if window == nil, let home { home.addSubview(self) }
      }
    }
    let windows = [Window(), Window()]
    let (view, inner) = (Returning(), View())
    view.addSubview(inner)
    windows[0].addSubview(view)
    view.home = windows[0]
    windows[1].addSubview(view)
    #expect(view.superview === windows[1] && windows[0].subviews.isEmpty && windows[1].subviews.count == 1)
    #expect(view.window === windows[1] && inner.window === windows[1])
  }

  @Test("the end of the application cancels touches")
  func end() throws {
    try perform { stage, view in
      stage.send(.press(3, 3), at: 10)
      try stage.run(until: 20)
      #expect(stage.log.text == "began(view) cancelled(view)")
    }
  }

  @Test("touches that a view does not handle go to its superviews, and then to the window")
  func chain() throws {
    final class Catcher: View {
      var log: Log?
      override func touchesBegan(_ touch: Touch) { log?.write("caught:\(touch.location(in: self))") }
      override func wheelTurned(_ wheel: MouseEvent.Wheel, at event: MouseEvent) { log?.write("\(wheel)") }
      override func keyPressed(_ key: KeyEvent) {
        log?.write("\(key.key)")
        super.keyPressed(key)
      }
    }
    try Stage.perform { stage in
      stage.logged = { _ in false }
      let catcher = Catcher(frame: Rect(x: 1, y: 1, width: 20, height: 6))
      catcher.log = stage.log
      let button = Button("b", frame: Rect(x: 1, y: 1, width: 20, height: 6))
      let inner = View(frame: Rect(x: 1, y: 0, width: 5, height: 2))
      stage.window.addSubview(catcher)
      catcher.addSubview(inner)
      catcher.addSubview(button)
      button.becomeFirstResponder()
      stage.send(.press(3, 1), .wheel(.left, 3, 1), .type(.up), .type(.enter), .type(.character("c"), .control), at: 10)
      let end = try stage.application.run()
      #expect(stage.log.text == "caught:Point(x: 2, y: 0) left up character(\"c\")" && end == .terminated)
    }
  }
}
