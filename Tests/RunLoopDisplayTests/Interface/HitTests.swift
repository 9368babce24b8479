// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Which view is hit, and which has the focus")
@MainActor
struct HitTests {
  private func view(_ name: String, _ x: Int, _ y: Int, _ width: Int, _ height: Int, in superview: View) -> View {
    let view = View(frame: Rect(x: x, y: y, width: width, height: height))
    view.name = name
    superview.addSubview(view)
    return view
  }

  @Test("the last subview is hit first; clipped, hidden and disabled views are skipped")
  func hit() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 20, height: 10))
    window.name = "window"
    let below = view("below", 0, 0, 10, 5, in: window)
    let above = view("above", 5, 0, 10, 5, in: window)
    let inner = view("inner", 3, 3, 10, 10, in: above)
    @MainActor func hit(_ x: Int, _ y: Int) -> String { window.hitTest(Point(x: x, y: y))?.name ?? "nothing" }
    #expect(
      [hit(0, 0), hit(5, 0), hit(8, 3), hit(8, 5), hit(15, 4), hit(19, 9)] == [
        "below", "above", "inner", "window", "window", "window",
      ])
    #expect([hit(20, 0), hit(-1, 0), hit(0, 10)] == ["nothing", "nothing", "nothing"])
    window.bringSubviewToFront(below)
    #expect(hit(5, 0) == "below")
    below.isHidden = true
    inner.isUserInteractionEnabled = false
    #expect(hit(0, 0) == "window" && hit(8, 3) == "above")
    above.bounds.origin = Point(x: 0, y: 3)
    inner.isUserInteractionEnabled = true
    #expect(hit(8, 0) == "inner" && inner.convert(Point(x: 1, y: 1), to: nil) == Point(x: 9, y: 1))
    #expect(inner.convert(Point(x: 9, y: 1), from: nil) == Point(x: 1, y: 1))
    #expect(below.convert(Point(x: 9, y: 1), from: inner) == Point(x: 17, y: 1))
    window.isUserInteractionEnabled = false
    #expect(hit(8, 0) == "nothing")
  }

  @Test("a window whose bounds do not begin at zero is hit where its views appear, and converts its coordinates")
  func windowBounds() throws {
    try Stage.perform { stage in
      stage.logged = { step in if case .touches = step { true } else { false } }
      let box = view("box", 4, 5, 6, 2, in: stage.window)
      let inner = view("inner", 1, 1, 2, 1, in: box)
      stage.window.bounds.origin = Point(x: 3, y: 4)
      #expect(inner.convert(.zero, to: nil) == Point(x: 5, y: 6))
      #expect(inner.convert(.zero, to: stage.window) == Point(x: 5, y: 6))
      #expect(inner.convert(Point(x: 5, y: 6), from: nil) == .zero)
      stage.at(5) {
        #expect(stage.window.hitTest(Point(x: 5, y: 6)) === inner && inner.visibleRect.origin == Point(x: 2, y: 2))
      }
      var places: [Point] = []
      let tap = TapGestureRecognizer { places += [$0.location, $0.location(in: inner), $0.location(in: stage.window)] }
      box.addGestureRecognizer(tap)
      // A hit where the inner view appears, and one where it would appear without the offset.
      stage.send(.press(2, 2), .release(2, 2), at: 10)
      stage.send(.press(9, 9), at: 20)
      try stage.run(until: 30)
      #expect(stage.log.text.hasPrefix("began(inner)") && stage.log.text.contains("began(Window)"))
      #expect(places == [Point(x: 5, y: 6), .zero, Point(x: 5, y: 6)])
    }
  }

  @Test("frames too far away for any screen are moved nearer")
  func frames() {
    let window = Window(frame: Rect(x: .max, y: .min, width: .max, height: -5))
    #expect(window.frame == Rect(x: 1 << 30, y: -1 << 30, width: 1 << 30, height: 0))
    let view = view("view", .max, .max, .max, .max, in: window)
    view.bounds.origin = Point(x: .min, y: .max)
    #expect(view.hitTest(.zero) == nil && view.visibleRect.isEmpty)
  }

  @Test("Tab visits the views in order and wraps around, Shift-Tab goes back, and both skip views without focus")
  func tab() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 20, height: 10))
    let buttons = ["a", "b", "c", "d", "e"].map { Button($0) }
    let box = View()
    window.addSubview(buttons[0])
    window.addSubview(box)
    window.addSubview(Label("label"))
    for button in buttons[1...3] { box.addSubview(button) }
    window.addSubview(buttons[4])
    buttons[2].isHidden = true
    buttons[3].isUserInteractionEnabled = false
    @MainActor func press(_ modifiers: KeyModifiers = []) -> String {
      window.sendEvent(.type(.tab, modifiers))
      return (window.firstResponder as? Button)?.title ?? "none"
    }
    #expect([press(), press(), press(), press(), press(.shift), press(.shift)] == ["a", "b", "e", "a", "e", "b"])
    box.isHidden = true
    #expect(press() == "a")
    window.firstResponder = nil
    #expect(press(.shift) == "e")
  }

  @Test("a responder that rejects losing the focus keeps it, unless it leaves the window")
  func keeping() {
    final class Keeper: Button {
      override var canResignFirstResponder: Bool { false }
    }
    final class Counting: Window {
      var changes = 0
      override func focusDidChange() { changes += 1 }
    }
    let window = Counting(frame: Rect(x: 0, y: 0, width: 20, height: 10))
    let keeper = Keeper("keeper")
    let other = Button("other")
    let box = View()
    #expect(!keeper.becomeFirstResponder() && !View().becomeFirstResponder())
    box.addSubview(keeper)
    window.addSubview(box)
    window.addSubview(other)
    #expect(keeper.becomeFirstResponder() && keeper.isFirstResponder)
    #expect(!other.becomeFirstResponder() && !keeper.resignFirstResponder() && keeper.isFirstResponder)
    window.moveFocus(forward: true)
    #expect(keeper.isFirstResponder && window.changes == 1)
    box.removeFromSuperview()
    #expect(window.firstResponder == nil && !keeper.isFirstResponder && window.changes == 2)
    #expect(other.becomeFirstResponder())
  }

  @Test("a view that leaves the window does not keep the focus that a responder in it passes to another one in it")
  func passing() {
    final class Passing: Button {
      weak var follower: Button?
      override func resignFirstResponder() -> Bool {
        let hasResigned = super.resignFirstResponder()
        if hasResigned { follower?.becomeFirstResponder() }
        return hasResigned
      }
    }
    let window = Window(frame: Rect(x: 0, y: 0, width: 20, height: 10))
    let (box, first, second, other) = (View(), Passing("first"), Button("second"), Button("other"))
    for button in [first, second] { box.addSubview(button) }
    for view in [box, other] { window.addSubview(view) }
    first.follower = second
    first.becomeFirstResponder()
    box.removeFromSuperview()
    #expect(window.firstResponder == nil && !second.isFirstResponder)
    // A follower that stays in the window gets the focus.
    window.addSubview(box)
    first.follower = other
    first.becomeFirstResponder()
    box.removeFromSuperview()
    #expect(other.isFirstResponder)
  }
}
