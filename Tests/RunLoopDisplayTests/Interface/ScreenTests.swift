// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The screen that views are composed to", .timeLimit(.minutes(20)))
@MainActor
struct ScreenTests {
  private final class Filled: View {
    let character: Character
    var draws = 0
    var lastVisible = Rect.zero

    init(_ character: Character, _ frame: Rect, background: Style? = nil) {
      self.character = character
      super.init(frame: frame)
      self.background = background
    }

    override func draw(_ canvas: inout Canvas) {
      draws += 1
      lastVisible = canvas.visibleRect
      canvas.fill(canvas.visibleRect, character)
    }
  }

  @Test(
    "later views cover earlier ones, are clipped by their superviews, and leave nothing behind when changed"
  )
  func order() throws {
    try Stage.perform(width: 8, height: 4) { stage in
      let low = Filled("a", Rect(x: 0, y: 0, width: 4, height: 3))
      let high = Filled("b", Rect(x: 2, y: 1, width: 4, height: 2))
      let inner = Filled("c", Rect(x: 3, y: -1, width: 9, height: 2))
      stage.window.addSubview(low)
      stage.window.addSubview(high)
      high.addSubview(inner)
      stage.at(10) { #expect(stage.device.text == "aaaa\naabbbc\naabbbb") }
      stage.at(100) { stage.window.bringSubviewToFront(low) }
      stage.at(150) { #expect(stage.device.text == "aaaa\naaaabc\naaaabb") }
      stage.at(200) { high.frame.origin = Point(x: 4, y: 2) }
      stage.at(250) { #expect(stage.device.text == "aaaa\naaaa\naaaabbbc\n    bbbb") }
      stage.at(300) { low.isHidden = true }
      stage.at(350) { #expect(stage.device.text == "\n\n    bbbc\n    bbbb") }
      stage.at(400) { inner.removeFromSuperview() }
      stage.at(450) { #expect(stage.device.text == "\n\n    bbbb\n    bbbb") }
      stage.at(500) { high.bounds.origin = Point(x: 1, y: 0) }
      stage.at(550) {
        low.isHidden = false
        high.frame = Rect(x: -2, y: 3, width: 4, height: 2)
      }
      try stage.run(until: 600)
      #expect(stage.device.text == "aaaa\naaaa\naaaa\nbb" && low.draws == 1 && high.draws == 1 && inner.draws == 1)
    }
  }

  @Test("undrawn parts of a view show its background or the views below, and text takes the background below it")
  func backgrounds() throws {
    try Stage.perform(width: 6, height: 2) { stage in
      let blue = View(frame: Rect(x: 1, y: 0, width: 4, height: 2))
      blue.background = Style(background: .blue)
      let label = Label("ab", style: Style(foreground: .red), frame: Rect(x: 1, y: 0, width: 3, height: 1))
      let opaque = Label("c", frame: Rect(x: 1, y: 1, width: 2, height: 1))
      opaque.background = .plain
      stage.window.addSubview(blue)
      blue.addSubview(label)
      blue.addSubview(opaque)
      stage.at(10) {
        let shown = stage.device.shown
        #expect((0..<6).map { shown[$0, 0].style.background } == [.default, .blue, .blue, .blue, .blue, .default])
        #expect(shown[2, 0].style == Style(foreground: .red, background: .blue))
        #expect(
          (0..<6).map { shown[$0, 1].style.background } == [.default, .blue, .default, .default, .blue, .default])
      }
      stage.at(100) { blue.background = nil }
      try stage.run(until: 200)
      #expect(stage.device.shown[2, 0].style == Style(foreground: .red) && stage.device.shown[4, 0] == .blank)
    }
  }

  @Test(
    "a view far larger than the screen keeps the visible cells, and draws others when they become visible"
  )
  func large() throws {
    try Stage.perform(width: 8, height: 2) { stage in
      let huge = Filled("x", Rect(x: 0, y: 0, width: 1 << 30, height: 1 << 30))
      stage.window.addSubview(huge)
      stage.at(100) { huge.frame.origin = Point(x: -1_000_000, y: -5) }
      try stage.run(until: 200)
      #expect(huge.draws == 2 && huge.lastVisible == Rect(x: 1_000_000, y: 5, width: 8, height: 2))
      #expect(huge.layer.coverage.size == Size(width: 8, height: 2) && stage.device.text == "xxxxxxxx\nxxxxxxxx")
    }
  }

  @Test("contents that were set are shown without drawing, until they are removed")
  func contents() throws {
    try Stage.perform(width: 8, height: 2) { stage in
      let view = Filled("x", Rect(x: 1, y: 0, width: 4, height: 1))
      stage.window.addSubview(view)
      var canvas = Canvas(size: Size(width: 3, height: 9))
      canvas.draw("abc", at: .zero)
      let grid = canvas.grid
      stage.at(100) { view.layer.contents = grid }
      stage.at(150) { #expect(stage.device.text == " abc" && view.layer.contents == grid) }
      stage.at(200) { view.setNeedsDisplay() }
      stage.at(250) { #expect(stage.device.text == " abc" && view.draws == 1) }
      stage.at(300) { view.layer.contents = nil }
      try stage.run(until: 400)
      #expect(stage.device.text == " xxxx" && view.draws == 2)
    }
  }

  @Test("a screen of one cell, and every size on the way there and back, shows what fits", arguments: [1, 2, 7])
  func sizes(height: Int) throws {
    try Stage.perform(width: 9, height: height) { stage in
      let field = TextField(prompt: "field: ", frame: Rect(x: 0, y: 0, width: 24, height: 1))
      let list = ListView { _, row in row ?? ListRow() }
      list.frame = Rect(x: 0, y: 1, width: 9, height: height - 1)
      list.rowCount = 5
      stage.window.addSubview(field)
      stage.window.addSubview(list)
      list.becomeFirstResponder()
      var at = 10
      for size in [(1, 1), (9, 1), (1, 9), (300, 200), (1, 1), (0, 0), (9, height)] {
        stage.send(.type(.end), .size(max(1, size.0), max(1, size.1)), .type(.home), .press(0, 0), .drag(8, 8), at: at)
        at += 20
      }
      try stage.run(until: at + 20)
      #expect(stage.device.text.hasPrefix("field:") && stage.device.shown.size == Size(width: 9, height: height))
    }
  }

  @Test("bands of marked rows are taken from the top, and rows outside are ignored")
  func rows() {
    var rows = RowSet(height: 10)
    #expect(rows.isEmpty && rows.takeBand() == nil)
    rows.insert(-5..<1)
    rows.insert(3..<5)
    rows.insert(5..<6)
    rows.insert(9..<99)
    rows.insert(4..<4)
    var bands: [Range<Int>] = []
    while let band = rows.takeBand(from: bands.last?.upperBound ?? 0) { bands.append(band) }
    #expect(bands == [0..<1, 3..<6, 9..<10] && rows.isEmpty)
    var none = RowSet(height: -1)
    none.insert(0..<5)
    #expect(none.takeBand() == nil)
  }
}
