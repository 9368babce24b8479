// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Controls and gestures as UIKit has them", .timeLimit(.minutes(20)))
@MainActor
struct ControlTests {
  private func perform(_ body: (Stage) throws -> Void) throws {
    try Stage.perform { stage in
      stage.logged = { _ in false }
      try body(stage)
    }
  }

  private func logger(_ stage: Stage, _ name: String) -> @MainActor (GestureRecognizer) -> Void {
    { stage.log.write("\(name):\($0.state)") }
  }

  private func click(_ x: Int, _ y: Int, _ button: MouseEvent.Button = .left) -> [InputEvent] {
    [.press(x, y, button), .release(x, y, button)]
  }

  @Test("a triple tap is neither a double nor a single tap, whatever the order of the recognisers", arguments: 0..<6)
  func triple(_ order: Int) throws {
    try perform { stage in
      let three = TapGestureRecognizer(tapsRequired: 3, logger(stage, "triple"))
      let two = TapGestureRecognizer(tapsRequired: 2, logger(stage, "double"))
      let one = TapGestureRecognizer(logger(stage, "single"))
      two.require(toFail: three)
      one.require(toFail: two)
      var rest = [one, two, three]
      let first = rest.remove(at: order / 2)
      for recognizer in [first] + (order % 2 == 0 ? rest : rest.reversed()) {
        stage.window.addGestureRecognizer(recognizer)
      }
      for (count, date) in [(3, 10), (2, 2000), (1, 4000)] {
        stage.at(date) { stage.device.send((0..<count).flatMap { _ in self.click(3, 3) }) }
      }
      try stage.run(until: 6000)
      #expect(stage.log.text == "triple:recognized double:recognized single:recognized")
    }
  }

  @Test("a tap on a button does not tap the surrounding view, but a tap beside it does")
  func buttonInTappedView() throws {
    try perform { stage in
      let card = View(frame: Rect(x: 0, y: 0, width: 20, height: 5))
      card.addGestureRecognizer(TapGestureRecognizer(logger(stage, "card")))
      card.addSubview(Button("[ OK ]", frame: Rect(x: 2, y: 2, width: 6, height: 1)) { stage.log.write("button") })
      stage.window.addSubview(card)
      stage.at(10) { stage.device.send(self.click(3, 2)) }
      stage.at(500) { stage.device.send(self.click(12, 2)) }
      try stage.run(until: 1000)
      #expect(stage.log.text == "button card:recognized")
    }
  }

  @Test("views and recognisers can prevent a gesture from beginning or reject a touch")
  func vetoes() throws {
    final class Guarded: View {
      override func gestureRecognizerShouldBegin(_ recognizer: GestureRecognizer) -> Bool {
        !(recognizer is PanGestureRecognizer)
      }
    }
    final class Upper: TapGestureRecognizer {
      override func shouldReceive(_ touch: Touch) -> Bool { touch.location.y < 2 }
    }
    try perform { stage in
      let view = Guarded(frame: Rect(x: 0, y: 0, width: 40, height: 10))
      view.addGestureRecognizer(PanGestureRecognizer(logger(stage, "pan")))
      view.addGestureRecognizer(Upper(logger(stage, "tap")))
      stage.window.addSubview(view)
      stage.send(.press(0, 0), .drag(9, 0), .release(9, 0), at: 10)
      stage.at(100) { stage.device.send(self.click(1, 1)) }
      stage.at(200) { stage.device.send(self.click(1, 3)) }
      try stage.run(until: 1000)
      #expect(stage.log.text == "tap:recognized")
    }
  }

  @Test("hit testing can be overridden")
  func hitTest() throws {
    final class Wide: View {
      override func hitTest(_ point: Point) -> View? {
        bounds.contains(Point(x: point.x / 2, y: point.y)) ? self : nil
      }
    }
    let window = Window(frame: Rect(x: 0, y: 0, width: 40, height: 10))
    let view = Wide(frame: Rect(x: 0, y: 0, width: 4, height: 1))
    window.addSubview(view)
    #expect(window.hitTest(Point(x: 7, y: 0)) === view && window.hitTest(Point(x: 8, y: 0)) === window)
  }

  @Test("a button that is hidden or disabled while it is pressed does nothing", arguments: 0..<4)
  func lostButton(way: Int) throws {
    try Stage.perform { stage in
      let card = View(frame: Rect(x: 0, y: 0, width: 10, height: 3))
      let button = Button("OK", frame: Rect(x: 0, y: 0, width: 2, height: 1)) { stage.log.write("pressed") }
      stage.window.addSubview(card)
      card.addSubview(button)
      stage.send(.press(0, 0), at: 10)
      stage.at(20) {
        switch way {
        case 0: button.isHidden = true
        case 1: button.isUserInteractionEnabled = false
        case 2: card.isUserInteractionEnabled = false
        default: break
        }
      }
      stage.send(.release(0, 0), at: 30)
      try stage.run(until: 40)
      #expect(stage.log.text.contains("pressed") == (way == 3))
    }
  }

  @Test("only the left button presses, selects and moves the focus")
  func leftButton() throws {
    try perform { stage in
      let list = ListView { _, reused in reused ?? ListRow() }
      list.frame = Rect(x: 0, y: 2, width: 10, height: 3)
      list.rowCount = 3
      let field = TextField(frame: Rect(x: 0, y: 6, width: 10, height: 1))
      stage.window.addSubview(Button("OK", frame: Rect(x: 0, y: 0, width: 2, height: 1)) { stage.log.write("pressed") })
      stage.window.addSubview(list)
      stage.window.addSubview(field)
      for button in [MouseEvent.Button.right, .middle] {
        stage.at(10) {
          stage.device.send(self.click(0, 0, button) + self.click(0, 3, button) + self.click(0, 6, button))
        }
      }
      stage.at(20) {
        #expect(list.selectedRow == nil && stage.window.firstResponder == nil)
        stage.device.send([.press(0, 0)] + self.click(1, 0, .right) + [.release(0, 0)] + self.click(0, 3))
      }
      try stage.run(until: 100)
      #expect(stage.log.text == "pressed" && list.selectedRow == 1)
    }
  }

  @Test("a view that is hidden or disabled, directly or by an ancestor, receives no keys", arguments: 0..<4)
  func unavailable(_ way: Int) throws {
    final class Root: Window {
      var keys: [KeyEvent.Key] = []
      override func keyPressed(_ key: KeyEvent) { keys.append(key.key) }
    }
    let window = Root()
    let box = View(frame: Rect(x: 0, y: 0, width: 10, height: 2))
    let field = TextField(frame: Rect(x: 0, y: 0, width: 10, height: 1))
    box.addSubview(field)
    window.addSubview(box)
    field.becomeFirstResponder()
    let view = way < 2 ? field : box
    if way % 2 == 0 { view.isHidden = true } else { view.isUserInteractionEnabled = false }
    window.sendEvent(.type(.character("a")))
    window.sendEvent(.paste("b", isTruncated: false))
    #expect(field.text == "" && window.keys == [.character("a")])
    view.isHidden = false
    view.isUserInteractionEnabled = true
    window.sendEvent(.type(.character("c")))
    #expect(field.text == "c")
  }

  @Test("Tab skips views that do not fit on a small screen")
  func smallScreen() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 10, height: 3))
    let buttons = [0, 2, 3, 1].map { Button("x", frame: Rect(x: 0, y: $0, width: 1, height: 1)) }
    buttons[3].frame.size.height = 0
    for button in buttons { window.addSubview(button) }
    for expected in [0, 1, 0] {
      window.moveFocus(forward: true)
      #expect(window.firstResponder === buttons[expected])
    }
    window.frame.size.height = 4
    window.moveFocus(forward: false)
    #expect(window.firstResponder === buttons[2])
  }

  @Test("Tab scrolls to the view it focuses, even in nested scroll views")
  func tabScrolls() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 20, height: 6))
    let outer = ScrollView(frame: Rect(x: 0, y: 0, width: 20, height: 4))
    outer.contentSize = Size(width: 20, height: 30)
    let inner = ScrollView(frame: Rect(x: 0, y: 10, width: 20, height: 3))
    inner.contentSize = Size(width: 20, height: 20)
    outer.addSubview(inner)
    window.addSubview(outer)
    let buttons = (0..<20).map { Button("b\($0)", frame: Rect(x: 0, y: $0, width: 12, height: 1)) }
    for button in buttons { inner.addSubview(button) }
    for _ in 0..<12 { window.sendEvent(.type(.tab)) }
    #expect(window.firstResponder === buttons[9])
    let place = buttons[9].convert(Point.zero, to: window)
    #expect((0..<4).contains(place.y) && inner.contentOffset.y == 7 && outer.contentOffset.y == 9)
  }

  @Test("the wheel over a scroll view at its end scrolls the surrounding one")
  func nestedWheel() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 20, height: 6))
    let outer = ScrollView(frame: Rect(x: 0, y: 0, width: 20, height: 5))
    outer.contentSize = Size(width: 20, height: 50)
    let inner = ScrollView(frame: Rect(x: 0, y: 0, width: 20, height: 3))
    inner.contentSize = Size(width: 20, height: 4)
    outer.addSubview(inner)
    window.addSubview(outer)
    for _ in 0..<2 { window.sendEvent(.wheel(.down, 1, 1)) }
    #expect(inner.contentOffset.y == 1 && outer.contentOffset.y == 3)
  }

  @Test("every view learns that the terminal lost the focus, and held keys and buttons are cancelled")
  func windowFocus() throws {
    final class Seen: View {
      var log: [Bool] = []
      var cancelled = 0
      override func windowFocusDidChange() { log.append(window?.isInFront ?? true) }
      override func touchesBegan(_ touch: Touch) {}
      override func touchesCancelled(_ touch: Touch) { cancelled += 1 }
    }
    let window = Window(frame: Rect(x: 0, y: 0, width: 20, height: 6))
    let view = Seen(frame: Rect(x: 0, y: 0, width: 9, height: 2))
    window.addSubview(view)
    for event in [.press(1, 1), .focus(false), .focus(false), .focus(true)] as [InputEvent] { window.sendEvent(event) }
    #expect(view.log == [false, true] && view.cancelled == 1)
  }

  @Test("a swipe is quick and straight")
  func swipe() throws {
    try perform { stage in
      stage.window.addGestureRecognizer(SwipeGestureRecognizer(.left, logger(stage, "left")))
      stage.window.addGestureRecognizer(SwipeGestureRecognizer(.down, logger(stage, "down")))
      stage.send(.press(20, 2), .drag(17, 2), .drag(14, 3), .release(14, 3), at: 10)
      stage.send(.press(20, 2), .drag(18, 5), .drag(10, 9), .release(10, 9), at: 100)
      stage.send(.press(5, 1), .drag(5, 5), .release(5, 5), at: 200)
      stage.send(.press(20, 2), at: 300)
      stage.send(.drag(10, 2), .release(10, 2), at: 900)
      try stage.run(until: 2000)
      #expect(stage.log.text == "left:recognized down:recognized")
    }
  }

  @Test("a hover begins, changes and ends if the device tracks the mouse")
  func hover() throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 5))
      let window = Window()
      let view = View(frame: Rect(x: 2, y: 1, width: 4, height: 2))
      window.addSubview(view)
      var log: [String] = []
      view.addGestureRecognizer(HoverGestureRecognizer { log.append("\($0.state):\($0.location.x)") })
      let application = Application(device: terminal, window: window)
      application.mouseTracking = .movements
      try application.start()
      #expect(terminal.modes.contains(1003) && !terminal.modes.contains(1002))
      for x in [0, 2, 3, 9, 4] {
        terminal.mouse(.move, at: Point(x: x, y: 1))
        try time.advance(by: .milliseconds(20))
      }
      terminal.focus(false)
      try time.advance(by: .milliseconds(20))
      #expect(log == ["began:2", "changed:3", "ended:9", "began:4", "ended:0"])
      application.mouseTracking = .off
      #expect(terminal.modes.isDisjoint(with: [1002, 1003]))
      application.finish()
      #expect(terminal.errors == [])
    }
  }

  @Test("the shared application is the running one")
  func shared() throws {
    try VirtualTime.asMain { _ in
      let first = Application(device: HeadlessTerminal(), window: Window())
      let second = Application(device: HeadlessTerminal(), window: Window())
      #expect(Application.shared === second)
      try first.start()
      #expect(Application.shared === first)
      first.finish()
      #expect(Application.shared === second)
    }
  }
}
