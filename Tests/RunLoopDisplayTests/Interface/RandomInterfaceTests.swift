// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Random interfaces", .timeLimit(.minutes(20)))
@MainActor
struct RandomInterfaceTests {
  @Test(
    "after any changes and input, the terminal shows what the views would draw, and every touch ends once",
    arguments: 0..<6)
  func random(seed: Int) throws {
    try VirtualTime.asMain { time in
      let world = World(seed: UInt64(seed))
      try world.application.start()
      for step in 0..<100 {
        for _ in 0..<world.random.below(4) { world.change() }
        for _ in 0..<world.random.below(4) { world.send() }
        // The frame interval passes, and sometimes the wait for another tap.
        try time.advance(by: .milliseconds(world.random.oneIn(4) ? 400 : 17), inMode: world.application.mode)
        try time.advance(by: .milliseconds(17), inMode: world.application.mode)
        try #require(world.terminal.errors.isEmpty, "step \(step): \(world.terminal.errors)")
        // The comparison lets every view draw, so earlier drawings should remain visible for a while.
        guard world.random.oneIn(3) else { continue }
        let shown = world.terminal.cells
        try #require(shown.size == world.window.frame.size)
        let anew = world.drawAnew()
        if let difference = firstDifference(shown, anew) { Issue.record("step \(step): \(difference)"); break }
      }
      world.application.finish()
      #expect(world.begun == world.ended && world.isBalanced)
      #expect(world.actions > 0 || seed > 0)
    }
  }

  private func firstDifference(_ left: Grid, _ right: Grid) -> String? {
    for y in 0..<left.size.height {
      for x in 0..<left.size.width where !Cell.looksSame(left[x, y], right[x, y]) {
        return "at \(x), \(y): \"\(left.text(row: y))\" and \"\(right.text(row: y))\""
      }
    }
    return nil
  }
}

/// An application with random views, recognisers and input.
@MainActor
private final class World: ApplicationTrace {
  var random: SplitMix64
  let terminal = HeadlessTerminal(size: Size(width: 24, height: 8))
  let window = Window()
  let application: Application
  private var views: [Blob] = []
  private let list: ListView
  private var recognizers: [GestureRecognizer] = []
  private var lastNumber = 0
  var begun: [String: Int] = [:]
  var ended: [String: Int] = [:]
  var actions = 0
  /// Whether each end of a touch that a view received had begun there.
  var isBalanced = true

  init(seed: UInt64) {
    random = SplitMix64(seed: seed)
    list = ListView { index, reused in
      let row = reused ?? ListRow()
      row.text = "row \(index) 漢字"
      return row
    }
    application = Application(device: terminal, window: window)
    application.trace = self
    list.rowCount = 50
    list.frame = Rect(x: 3, y: 2, width: 15, height: 5)
    window.addSubview(list)
    for _ in 0..<5 { addView() }
    let tap = TapGestureRecognizer { [unowned self] _ in actions += 1 }
    let double = TapGestureRecognizer(tapsRequired: 2) { [unowned self] _ in change() }
    tap.require(toFail: double)
    let pan = PanGestureRecognizer { [unowned self] _ in if random.oneIn(3) { change() } }
    let press = LongPressGestureRecognizer(minimumDuration: .milliseconds(30)) { [unowned self] _ in actions += 1 }
    pan.require(toFail: press)
    let other = PanGestureRecognizer { _ in }
    if random.oneIn(2) { other.recognizeSimultaneously(with: pan) }
    recognizers = [tap, double, pan, press, other]
    for recognizer in recognizers { (random.oneIn(2) ? window : views[0]).addGestureRecognizer(recognizer) }
  }

  func applicationDid(_ step: ApplicationStep) {
    guard case .touches(let phase, let view) = step else { return }
    switch phase {
    case .began: begun[view, default: 0] += 1
    case .moved: break
    case .ended, .cancelled: ended[view, default: 0] += 1
    }
    if ended[view, default: 0] > begun[view, default: 0] { isBalanced = false }
  }

  private func addView() {
    lastNumber += 1
    let view = Blob(lastNumber, self)
    view.frame = randomFrame()
    views.append(view)
    let parent: View = random.oneIn(2) ? window : views[random.below(views.count)]
    if parent !== view { parent.addSubview(view) } else { window.addSubview(view) }
  }

  private func randomFrame() -> Rect {
    Rect(x: random.below(26) - 3, y: random.below(10) - 2, width: random.below(14), height: random.below(6))
  }

  /// Makes a random change, inside or outside of a call-out.
  func change() {
    guard !views.isEmpty else { return addView() }
    let view = views[random.below(views.count)]
    let recognizer = recognizers[random.below(recognizers.count)]
    switch random.below(17) {
    case 0: if views.count < 12 { addView() }
    case 1:
      view.removeFromSuperview()
      if random.oneIn(2) { views.removeAll { $0 === view } }
    case 2: if view.superview == nil { window.addSubview(view) } else { view.superview?.bringSubviewToFront(view) }
    case 3, 4: view.frame = randomFrame()
    case 5: view.bounds.origin = Point(x: random.below(5) - 2, y: random.below(5) - 2)
    case 6: view.isHidden.toggle()
    case 7: view.isUserInteractionEnabled.toggle()
    case 8: view.background = random.oneIn(2) ? nil : Style(background: .palette(UInt8(random.below(8))))
    case 9: view.setNeedsDisplay()
    case 10: view.setNeedsLayout()
    case 11: recognizer.isEnabled.toggle()
    case 12: recognizer.view?.removeGestureRecognizer(recognizer)
    case 13: view.addGestureRecognizer(recognizer)
    case 14: list.contentOffset.y = random.below(60) - 5
    case 15: list.rowCount = random.below(60)
    default: if !window.isDescendant(of: view), !views[0].isDescendant(of: view) { views[0].addSubview(view) }
    }
  }

  func send() {
    let point = Point(x: random.below(24), y: random.below(8))
    let button = [MouseEvent.Button.left, .middle, .right][random.oneIn(3) ? random.below(3) : 0]
    switch random.below(12) {
    case 0, 1, 2: terminal.mouse(.press(button), at: point)
    case 3, 4, 5: terminal.mouse(.drag(button), at: point)
    case 6: terminal.mouse(.release(button), at: point)
    case 7: terminal.click(at: point)
    case 8: terminal.mouse(.wheel(random.oneIn(2) ? .up : .down), at: point)
    case 9: terminal.press(random.oneIn(2) ? .tab : .down)
    case 10: terminal.type("x漢")
    default: if random.oneIn(4) { terminal.resize(to: Size(width: 1 + random.below(30), height: 1 + random.below(10))) }
    }
  }

  /// Redraws all views and returns the resulting screen.
  func drawAnew() -> Grid {
    let size = window.frame.size
    invalidate(window)
    let screen = Screen()
    screen.reset(to: size)
    _ = screen.compose(window)
    return screen.grid
  }

  private func invalidate(_ view: View) {
    view.layer.discard()
    for view in view.subviews { invalidate(view) }
  }
}

/// A view that draws its number in every cell, and changes the world when called.
private final class Blob: View {
  private let number: Int
  private unowned let world: World

  init(_ number: Int, _ world: World) {
    self.number = number
    self.world = world
    super.init()
    name = "\(number)"
  }

  override var canBecomeFirstResponder: Bool { number % 2 == 0 }

  override func draw(_ canvas: inout Canvas) {
    canvas.fill(Rect(origin: .zero, size: bounds.size), number % 3 == 0 ? "漢" : number % 3 == 1 ? "x" : "▒")
    canvas.draw("\(number)", at: Point(x: 1, y: 0), style: Style(foreground: .red))
  }

  override func layoutSubviews() { if world.random.oneIn(20) { subviews.first?.frame.origin.x += 1 } }
  override func touchesBegan(_ touch: Touch) { if world.random.oneIn(5) { world.change() } }
  override func touchesMoved(_ touch: Touch) { if world.random.oneIn(5) { world.change() } }
  override func touchesEnded(_ touch: Touch) { if world.random.oneIn(5) { world.change() } }
  override func touchesCancelled(_ touch: Touch) { if world.random.oneIn(5) { world.change() } }
}
