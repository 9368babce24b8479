// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The five views", .timeLimit(.minutes(20)))
@MainActor
struct ViewTests {
  /// Types keys, each in its own turn, and returns the rows that are visible in the end.
  private func type(_ events: [InputEvent], into view: View, width: Int = 20, height: Int = 3) throws -> String {
    var text = ""
    try Stage.perform(width: width, height: height) { stage in
      view.frame = Rect(x: 0, y: 0, width: width, height: height)
      stage.window.addSubview(view)
      view.becomeFirstResponder()
      for (index, event) in events.enumerated() { stage.send(event, at: 20 * (index + 1)) }
      try stage.run(until: 20 * (events.count + 5))
      text = stage.device.text
    }
    return text
  }

  @Test("a label aligns its text in three ways, and leaves out what does not fit")
  func label() throws {
    try Stage.perform(width: 9, height: 5) { stage in
      for (row, alignment) in [Label.Alignment.left, .center, .right].enumerated() {
        let label = Label("text", frame: Rect(x: 0, y: row, width: 9, height: 1))
        label.alignment = alignment
        stage.window.addSubview(label)
      }
      stage.window.addSubview(Label("longer than it is wide", frame: Rect(x: 0, y: 3, width: 5, height: 1)))
      let empty = Label("nowhere", frame: Rect(x: 0, y: 4, width: 0, height: 0))
      stage.window.addSubview(empty)
      try stage.run(until: 1)
      #expect(stage.device.text == "text\n  text\n     text\nlonge")
    }
  }

  @Test(
    "a button is pressed with Enter or a release above it, not by a release elsewhere or a cancelled touch")
  func button() throws {
    try Stage.perform { stage in
      stage.logged = { _ in false }
      let button = Button("ok", frame: Rect(x: 2, y: 1, width: 4, height: 1)) { stage.log.write("pressed") }
      stage.window.addSubview(Button("other", frame: Rect(x: 20, y: 1, width: 5, height: 1)))
      stage.window.addSubview(button)
      stage.send(.press(3, 1), at: 10)
      stage.at(15) { #expect(button.isHighlighted && button.isFirstResponder) }
      stage.send(.drag(9, 1), at: 20)
      stage.at(25) { #expect(!button.isHighlighted) }
      stage.send(.drag(5, 1), .release(5, 1), at: 30)
      stage.send(.press(3, 1), .release(9, 9), at: 40)
      stage.send(.press(3, 1), .size(30, 5), .release(3, 1), at: 50)
      stage.send(.type(.enter), .type(.enter, .alt), .type(.character("x")), at: 60)
      try stage.run(until: 100)
      #expect(stage.log.text == "pressed pressed" && !button.isHighlighted)
      #expect(
        stage.device.shown[2, 1].style == button.focusedStyle && stage.device.text == "\n  ok                other")
    }
  }

  @Test("a text field inserts characters at the cursor, and passes other keys to the next responder")
  func editing() throws {
    final class Root: Window {
      var keys: [KeyEvent.Key] = []
      override func keyPressed(_ key: KeyEvent) { keys.append(key.key) }
    }
    let window = Root(frame: Rect(x: 0, y: 0, width: 20, height: 1))
    let field = TextField(prompt: "> ", text: "bd")
    var changes: [String] = []
    field.textDidChange = { changes.append($0) }
    window.addSubview(field)
    field.becomeFirstResponder()
    let events: [InputEvent] = [
      .type(.left), .type(.character("c")), .type(.home), .type(.backspace), .type(.character("a")), .type(.left),
      .type(.left),
      .type(.end), .type(.right), .type(.delete), .type(.character("e"), .shift), .type(.character("x"), .control),
      .type(.enter),
      .type(.tab), .type(.up), .type(.character("\u{E9}"), .alt),
    ]
    for event in events { window.sendEvent(event) }
    #expect(field.text == "abcde" && field.cursor == 5 && changes == ["bcd", "abcd", "abcde"])
    #expect(window.keys == [.character("x"), .enter, .tab, .up, .character("\u{E9}")])
    window.sendEvent(.type(.home))
    window.sendEvent(.type(.delete))
    window.sendEvent(.paste("1\r\n2\n3", isTruncated: false))
    #expect(field.text == "1 2 3bcde" && field.cursor == 5)
    window.sendEvent(.paste("", isTruncated: false))
    #expect(changes.count == 5)
    field.text = "e"
    window.sendEvent(.type(.character("\u{301}")))
    window.sendEvent(.type(.character("f")))
    #expect(field.text == "e\u{301}f" && field.cursor == 2)
  }

  @Test("characters that combine with their neighbours count as one for the cursor too")
  func joining() {
    var line = TextLine("\u{301}")
    line.cursor = 0
    #expect(line.insert("a") && line.text == "a\u{301}" && line.characters.count == 1 && line.cursor == 1)
    #expect(line.insert("b") && line.text == "a\u{301}b" && line.cursor == 2)
    // Two halves of a flag, when the letter between them is deleted.
    line = TextLine("x\u{1F1E9}-\u{1F1EA}y")
    line.cursor = 2
    #expect(line.deleteForward() && line.characters == ["x", "🇩🇪", "y"] && line.cursor == 2)
    line = TextLine("\u{1F1E9}-\u{1F1EA}")
    line.cursor = 2
    #expect(line.deleteBackward() && line.characters == ["🇩🇪"] && line.cursor == 1)
    #expect(line.deleteBackward() && line.text == "" && line.cursor == 0 && !line.deleteBackward())
  }

  @Test(
    "a character keeps 31 scalars, whether it is typed, pasted, set or joined",
    arguments: [
      ("e", "\u{301}"), ("\u{1100}", "\u{1100}"), ("👩", "\u{200D}👩"), ("k", "\u{20E3}\u{FE0F}"),
    ])
  func longCharacters(_ first: String, _ next: String) {
    func check(_ line: TextLine, _ text: String) {
      #expect(line.characters.allSatisfy { $0.unicodeScalars.count <= 31 } && line.characters == Array(text))
    }
    let long = first + String(repeating: next, count: 100)
    let kept = String(String.UnicodeScalarView(long.unicodeScalars.prefix(31)))
    var line = TextLine(long + "-" + long)
    check(line, kept + "-" + kept)
    line.cursor = 1
    _ = line.insert(long)
    // The halves are joined.
    _ = line.deleteForward()
    #expect(line.characters.allSatisfy { $0.unicodeScalars.count <= 31 })
    line = TextLine("a")
    _ = line.insert(first)
    var changes = 0
    for _ in 0..<100 where line.insert(next) { changes += 1 }
    check(line, "a" + kept)
    // An insertion of which nothing is kept is not reported as a change.
    #expect(changes == (30 + next.unicodeScalars.count - 1) / next.unicodeScalars.count)
    _ = line.insert("b")
    check(line, "a" + kept + "b")
  }

  @Test("an edit acts on the text as a whole, wherever the cursor is", arguments: 0..<100)
  func edits(_ seed: Int) {
    var random = SplitMix64(seed: UInt64(seed))
    let parts = [
      "a", "b", "世", "\u{301}", "\u{1F1E9}", "\u{1F1EA}", "👩", "\u{200D}", "\u{1F3FD}", "\u{1112}", "\u{1161}",
    ]
    var line = TextLine("")
    for _ in 0..<60 {
      let before = String(line.characters[..<line.cursor])
      let after = String(line.characters[line.cursor...])
      switch random.below(5) {
      case 0, 1:
        let part = parts[random.below(parts.count)]
        #expect(line.insert(part) && line.characters == Array(before + part + after))
      case 2:
        let rest = String(before.dropLast())
        #expect(line.deleteBackward() == !before.isEmpty && line.characters == Array(rest + after))
      case 3: #expect(line.deleteForward() == !after.isEmpty && line.characters == Array(before + after.dropFirst()))
      default: line.cursor = random.below(line.count + 1)
      }
      #expect(line.text == String(line.characters) && line.count == line.characters.count)
    }
  }

  @Test("a text longer than its field scrolls to keep the cursor visible")
  func longText() throws {
    let typed = "abcdefgh".map { InputEvent.type(.character($0)) }
    #expect(try type(typed, into: TextField(prompt: "> "), width: 8, height: 1) == "> defgh")
    #expect(try type(typed + [.type(.home)], into: TextField(prompt: "> "), width: 8, height: 1) == "> abcdef")
    #expect(
      try type(typed + [.type(.home), .type(.delete), .type(.delete)], into: TextField(), width: 8, height: 1)
        == "cdefgh")
    #expect(try type(typed, into: TextField(prompt: "longer than the field"), width: 8, height: 1) == "longfgh")
    #expect(try type(typed, into: TextField(), width: 1, height: 1) == "")
  }

  @Test("a scroll view scrolls with keys and the wheel, within its contents")
  func scrolling() throws {
    let view = ScrollView()
    for row in 0..<10 { view.addSubview(Label("row \(row)", frame: Rect(x: row, y: row, width: 6, height: 1))) }
    view.contentSize = Size(width: 25, height: 10)
    #expect(try type([.type(.down)], into: view) == " row 1\n  row 2\n   row 3")
    #expect(try type([.type(.pageDown), .type(.up)], into: view) == "   row 3\n    row 4\n     row 5")
    #expect(try type([.type(.end), .type(.down)], into: view) == "       row 7\n        row 8\n         row 9")
    #expect(try type([.wheel(.right, 0, 0), .wheel(.up, 0, 0), .wheel(.up, 0, 0)], into: view) == "w 1\now 2\nrow 3")
    #expect(try type([.type(.home), .wheel(.right, 0, 0), .wheel(.right, 0, 0)], into: view) == "\n1\n 2")
    view.contentOffset = Point(x: .min, y: .max)
    #expect(view.contentOffset == Point(x: 0, y: 7))
    view.contentSize = Size(width: 5, height: 2)
    view.layoutIfNeeded()
    #expect(view.contentOffset == .zero)
  }

  private func makeList(_ count: Int, _ log: Log? = nil) -> ListView {
    let list = ListView { index, reused in
      log?.write(reused.map { "\($0.index)->\(index)" } ?? "new \(index)")
      let row = reused ?? ListRow()
      row.text = "row \(index)"
      return row
    }
    list.rowCount = count
    return list
  }

  @Test("a list of a million rows makes only the visible ones, and reuses them")
  func reuse() throws {
    let log = Log()
    let list = makeList(1_000_000, log)
    let text = try type(
      [.type(.down), .wheel(.down, 0, 0), .type(.end), .type(.up), .type(.pageUp), .type(.home)], into: list)
    #expect(text == "row 0\nrow 1\nrow 2")
    #expect(
      log.text == """
        new 0 new 1 new 2 0->3 1->4 2->5 3->999997 4->999998 5->999999 999997->999994 999998->999995 \
        999999->999996 999994->0 999995->1 999996->2
        """)
    #expect(list.subviews.count == 3 && list.visibleRows == 0..<3 && list.selectedRow == 0)
  }

  @Test("the list selection moves with keys and clicks, scrolls as little as needed, and is drawn")
  func selection() throws {
    let list = makeList(10)
    var selections: [Int?] = []
    list.selectionDidChange = { selections.append($0) }
    #expect(
      try type([.type(.up), .type(.down), .type(.down), .type(.down), .press(2, 0)], into: list)
        == "row 1\nrow 2\nrow 3")
    #expect(
      selections == [0, 1, 2, 3, 1] && list.visibleRow(1)?.isSelected == true && list.visibleRow(3)?.isSelected == false
    )
    list.selectedRow = 99
    #expect(list.selectedRow == 1)
    list.rowCount = 1
    #expect(list.selectedRow == 0)
    list.rowCount = -5
    #expect(list.selectedRow == nil && list.rowCount == 0)
  }

  @Test("Page keys move the visible part and the selection, as far as there are rows")
  func pages() throws {
    let list = makeList(10)
    #expect(try type([.type(.pageDown)], into: list) == "row 3\nrow 4\nrow 5" && list.selectedRow == 3)
    #expect(
      try type([.type(.up), .type(.pageDown), .type(.pageDown), .type(.pageDown)], into: list)
        == "row 7\nrow 8\nrow 9" && list.selectedRow == 9)
    #expect(try type([.type(.pageUp)], into: list) == "row 4\nrow 5\nrow 6" && list.selectedRow == 6)
    #expect(
      try type([.type(.pageUp), .type(.pageUp), .type(.pageUp)], into: list) == "row 0\nrow 1\nrow 2"
        && list.selectedRow == 0)
  }

  @Test("rows that a list gains, loses or reloads are shown in the same turn")
  func changes() throws {
    try Stage.perform(width: 20, height: 4) { stage in
      var word = "row"
      let list = ListView { index, reused in
        let row = reused ?? ListRow()
        row.text = "\(word) \(index)"
        return row
      }
      list.frame = Rect(x: 0, y: 0, width: 20, height: 3)
      list.rowCount = 2
      stage.window.addSubview(list)
      stage.at(20) { list.rowCount = 5 }
      stage.at(50) { #expect(stage.device.text == "row 0\nrow 1\nrow 2") }
      stage.at(100) { list.contentOffset.y = 99 }
      stage.at(150) { #expect(stage.device.text == "row 2\nrow 3\nrow 4") }
      stage.at(200) { list.rowCount = 4 }
      stage.at(250) { #expect(stage.device.text == "row 1\nrow 2\nrow 3") }
      stage.at(300) {
        word = "line"
        list.reload()
      }
      stage.at(350) { #expect(stage.device.text == "line 1\nline 2\nline 3") }
      stage.at(400) { list.frame.size.height = 1 }
      stage.at(450) { #expect(stage.device.text == "line 1" && list.subviews.count == 1) }
      try stage.run(until: 500)
    }
  }

  @Test("a row provider that triggers a layout of its list still provides each row once")
  func providerLaysOut() throws {
    try Stage.perform(width: 20, height: 6) { stage in
      var calls = 0
      weak var layingOut: ListView?
      let list = ListView { index, reused in
        calls += 1
        if calls < 3 {
          layingOut?.setNeedsLayout()
          layingOut?.layoutIfNeeded()
        }
        let row = reused ?? ListRow()
        row.text = "row \(index)"
        return row
      }
      layingOut = list
      list.frame = Rect(x: 0, y: 0, width: 20, height: 4)
      list.rowCount = 4
      stage.window.addSubview(list)
      let before = Diagnostic.layout.count
      stage.at(50) {
        #expect(list.visibleRows == 0..<4 && list.subviews.count == 4)
        #expect(stage.device.text == "row 0\nrow 1\nrow 2\nrow 3")
        calls = 0
        list.reload()
      }
      try stage.run(until: 100)
      #expect(list.visibleRows == 0..<4 && list.subviews.count == 4 && Diagnostic.layout.count == before)
    }
  }

  @Test(
    "the wheel runs the loop in the tracking mode, without nesting, until 150 ms after the last notch")
  func tracking() throws {
    try Stage.perform { stage in
      stage.logged = { step in
        switch step {
        case .stage(.entry, _), .stage(.exit, _), .source0, .commit: true
        default: false
        }
      }
      let list = makeList(1_000_000)
      list.frame = Rect(x: 0, y: 0, width: 20, height: 5)
      stage.window.addSubview(list)
      var modes: [RunLoop.Mode] = []
      stage.application.modeDidChange = { modes.append($0) }
      stage.send(Array(repeating: .wheel(.down, 0, 0), count: 370), at: 100)
      stage.send([.wheel(.up, 0, 0)], at: 200)
      stage.at(349) { stage.log.write("349") }
      stage.at(351) { stage.log.write("351") }
      let log = try stage.record(until: 1000)
      #expect(
        log == """
          S0:370 X commit E(tracking) S0:1 commit 349 X(tracking) E 351
          """)
      #expect(modes == [.tracking, .default] && list.contentOffset.y == 369 * 3)
    }
  }

  @Test("a list's scroll becomes a device hint: the area, and the number of rows since the previous frame")
  func hints() throws {
    try Stage.perform { stage in
      let list = makeList(100)
      list.frame = Rect(x: 2, y: 1, width: 20, height: 8)
      stage.window.addSubview(list)
      let area = list.frame
      stage.send([.wheel(.down, 3, 3), .wheel(.down, 3, 3), .wheel(.up, 3, 3)], at: 100)
      stage.at(150) { #expect(stage.device.scrolls == [ScrollHint(area: area, rows: 3)]) }
      stage.send([.wheel(.up, 3, 3)], at: 200)
      stage.at(250) { #expect(stage.device.scrolls == [ScrollHint(area: area, rows: -3)]) }
      stage.send([.wheel(.up, 3, 3)], at: 300)
      stage.at(400) { list.contentOffset.y = 50 }
      stage.at(450) { #expect(stage.device.scrolls.isEmpty) }
      stage.at(500) {
        list.contentOffset.y += 1
        list.frame.origin.x += 1
        list.contentOffset.y += 1
      }
      stage.at(550) { #expect(stage.device.scrolls.isEmpty) }
      try stage.run(until: 600)
    }
  }
}

extension Stage {
  fileprivate func send(_ events: [InputEvent], at milliseconds: Int) {
    at(milliseconds) { self.device.send(events) }
  }
}
