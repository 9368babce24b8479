// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Views that make a screen", .timeLimit(.minutes(20)))
@MainActor
struct ScreenViewTests {
  /// Returns the text that a view shows at a given size.
  private func shown(_ view: View, width: Int, height: Int) throws -> String {
    var shown = ""
    try Stage.perform(width: width, height: height) { stage in
      stage.logged = { _ in false }
      view.frame = Rect(x: 0, y: 0, width: width, height: height)
      stage.window.addSubview(view)
      try stage.run(until: 50)
      shown = stage.device.text
    }
    return shown
  }

  @Test("a stack assigns its views the size they need, and the rest to flexible ones")
  func stack() throws {
    let stack = StackView(.vertical)
    stack.addArrangedSubview(Label("first"))
    let hidden = Label("hidden")
    hidden.isHidden = true
    stack.addArrangedSubview(hidden)
    let row = StackView(.horizontal, spacing: 1)
    row.addArrangedSubview(Button("[a]"))
    row.addArrangedSubview(Label("x"), isFlexible: true)
    row.addArrangedSubview(Label("y"), isFlexible: true)
    row.addArrangedSubview(Button("[b]"))
    stack.addArrangedSubview(row, isFlexible: true)
    stack.addArrangedSubview(Label("last"))
    #expect(try shown(stack, width: 20, height: 5) == "first\n[a] x     y      [b]\n\n\nlast")
    #expect(row.frame == Rect(x: 0, y: 1, width: 20, height: 3))
    #expect(stack.sizeThatFits(Size(width: 20, height: 5)) == Size(width: 11, height: 3))
  }

  @Test("a stack with too little room shows its first views")
  func smallStack() throws {
    let stack = StackView(.vertical, spacing: 1)
    stack.layoutMargins = Insets(left: 1)
    for text in ["a", "b", "c"] { stack.addArrangedSubview(Label(text)) }
    #expect(try shown(stack, width: 3, height: 3) == " a\n\n b")
    stack.removeArrangedSubview(stack.arrangedSubviews[0])
    #expect(try shown(stack, width: 3, height: 3) == " b\n\n c")
  }

  @Test("stacks, grids and boxes arrange their views again when one changes its size, hides, leaves or returns")
  func rearranging() throws {
    try Stage.perform(width: 14, height: 4) { stage in
      stage.logged = { _ in false }
      let (label, button, last) = (Label("a"), Button("b"), Label("|"))
      let inner = StackView(.horizontal, spacing: 1)
      for view in [label, button] { inner.addArrangedSubview(view) }
      let grid = GridView()
      grid.addRow(with: [BoxView(content: inner), last])
      let stack = StackView(.horizontal, frame: stage.window.bounds)
      stack.addArrangedSubview(grid)
      stage.window.addSubview(stack)
      @MainActor func expect(_ text: String) { #expect(stage.device.shown.text(row: 1) == text) }
      stage.at(100) {
        stack.frame = stage.window.bounds
        label.text = "long"
      }
      stage.at(200) {
        expect("│long b│")
        label.isHidden = true
      }
      stage.at(300) {
        expect("│b│")
        label.isHidden = false
        button.title = "[b]"
      }
      stage.at(400) {
        expect("│long [b]│")
        label.removeFromSuperview()
      }
      stage.at(500) {
        expect("│[b]│")
        inner.addSubview(label)
        inner.spacing = 0
      }
      stage.at(600) {
        expect("│long[b]│")
        label.lineBreakMode = .wordWrapping
        label.text = "x\ny"
      }
      stage.at(700) {
        expect("│x[b]│")
        #expect(stage.device.shown.text(row: 0) == "╭────╮|" && stage.device.shown.text(row: 2) == "│y   │")
      }
      try stage.run(until: 800)
    }
  }

  @Test("views that a small stack, grid or box has shortened get their size back when there is room again")
  func shortened() {
    let views = (0..<4).map { _ in View(frame: Rect(x: 0, y: 0, width: 4, height: 2)) }
    let grid = GridView()
    grid.addRow(with: [views[2]])
    let stack = StackView(.vertical)
    let box = BoxView(content: views[1])
    for view in [views[0], box, grid, Label("label"), views[3]] { stack.addArrangedSubview(view) }
    let fitting = stack.sizeThatFits(Size(width: 9, height: 99))
    for height in [0, 1, 3, 4, 5, 11] {
      stack.frame.size = Size(width: height, height: height)
      stack.layoutIfNeeded()
    }
    #expect(fitting == Size(width: 6, height: 11) && stack.sizeThatFits(stack.frame.size) == fitting)
    #expect(views.map(\.frame.size.height) == [2, 2, 2, 2])
    // A frame that other code sets counts.
    views[0].frame.size = Size(width: 4, height: 5)
    #expect(stack.sizeThatFits(stack.frame.size).height == 14)
  }

  @Test("the size that fits a stack or grid takes the margins into account, and leaves out views that were removed")
  func fittingSizes() {
    let label = Label("aaaa bbbb cccc dddd")
    label.lineBreakMode = .wordWrapping
    let stack = StackView(.vertical)
    stack.layoutMargins = Insets(left: 5, right: 5)
    stack.addArrangedSubview(label)
    let removed = Label("a long label\nthat was removed")
    stack.addArrangedSubview(removed)
    let grid = GridView()
    grid.addRow(with: [removed, Label("x")])
    #expect(stack.sizeThatFits(Size(width: 20, height: 10)) == Size(width: 19, height: 2))
    stack.addArrangedSubview(removed)
    #expect(grid.sizeThatFits(Size(width: 20, height: 10)) == Size(width: 1, height: 1))
  }

  @Test("a box has a border and a title that is truncated, and neither if there is no room")
  func box() throws {
    #expect(
      try shown(BoxView("Title", content: Label("in")), width: 12, height: 3)
        == "╭ Title ───╮\n│in        │\n╰──────────╯")
    #expect(
      try shown(BoxView("A long title", content: Label("in")), width: 9, height: 3)
        == "╭ A lo… ╮\n│in     │\n╰───────╯")
    #expect(try shown(BoxView("Title", content: Label("in")), width: 12, height: 2) == "in")
    let box = BoxView("t", content: Label("abc"))
    box.padding = Insets(1)
    #expect(box.sizeThatFits(Size(width: 20, height: 20)) == Size(width: 7, height: 5))
  }

  @Test("a progress view is drawn in eighths of a cell, and clamps its value")
  func progress() throws {
    for (value, text) in [
      (0.0, "····"), (0.25, "█···"), (0.40625, "█▋··"), (1.0, "████"), (7.0, "████"), (-1.0, "····"), (.nan, "····"),
    ] {
      #expect(try shown(ProgressView(progress: value), width: 4, height: 1) == text)
    }
  }

  @Test(
    "a label wraps its text, or truncates it with an ellipsis",
    arguments: [
      (Label.LineBreakMode.clipping, 8, 1, "the quic"), (.truncatingTail, 8, 1, "the qui…"),
      (.truncatingTail, 40, 1, "the quick 世界 fox"),
      (.truncatingTail, 12, 1, "the quick …"), (.wordWrapping, 9, 3, "the quick\n世界 fox"),
      (.wordWrapping, 9, 1, "the quic…"), (.wordWrapping, 5, 2, "the\nquic…"),
    ])
  func lines(_ mode: Label.LineBreakMode, _ width: Int, _ height: Int, _ text: String) throws {
    let label = Label("the quick 世界 fox")
    label.lineBreakMode = mode
    #expect(try shown(label, width: width, height: height) == text)
  }

  @Test("a text field understands shell keys, and passes others on")
  func shellKeys() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 40, height: 3))
    let field = TextField(text: "one two  three", frame: Rect(x: 0, y: 0, width: 40, height: 1))
    window.addSubview(field)
    field.becomeFirstResponder()
    func press(_ character: Character, _ modifiers: KeyModifiers) {
      window.sendEvent(.type(.character(character), modifiers))
    }
    press("w", .control)
    #expect(field.text == "one two  " && field.cursor == 9)
    press("b", .alt)
    #expect(field.cursor == 4)
    press("k", .control)
    #expect(field.text == "one ")
    press("y", .control)
    #expect(field.text == "one two  " && field.cursor == 9)
    press("a", .control)
    press("f", .alt)
    #expect(field.cursor == 3)
    press("u", .control)
    #expect(field.text == " two  " && field.cursor == 0)
    press("d", .alt)
    press("d", .control)
    press("e", .control)
    press("h", .control)
    #expect(field.text == "")
    press("y", .control)
    #expect(field.text == " two")
    press("q", .super)
    #expect(field.text == " two")
  }

  @Test("a click sets the text cursor, and secret text is shown as dots and not kept")
  func secure() throws {
    let field = TextField(prompt: "> ", text: "a世b")
    field.isSecureTextEntry = true
    #expect(try shown(field, width: 10, height: 1) == "> •••")
    let window = Window(frame: Rect(x: 0, y: 0, width: 40, height: 3))
    field.frame = Rect(x: 1, y: 0, width: 20, height: 1)
    window.addSubview(field)
    window.sendEvent(.press(4, 0))
    #expect(field.cursor == 1 && field.isFirstResponder)
    field.isSecureTextEntry = false
    for (x, cursor) in [(3, 0), (4, 1), (5, 1), (6, 2), (7, 3), (19, 3), (1, 0)] {
      window.sendEvent(.press(x, 0))
      #expect(field.cursor == cursor, "\(x)")
    }
  }

  @Test("the keys for words do not show where the words of a secret text begin")
  func secretWords() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 40, height: 3))
    let field = TextField(text: "one two, three")
    field.isSecureTextEntry = true
    window.addSubview(field)
    field.becomeFirstResponder()
    func press(_ key: KeyEvent.Key, _ modifiers: KeyModifiers) { window.sendEvent(.type(key, modifiers)) }
    press(.left, .control)
    #expect(field.cursor == 0)
    press(.character("f"), .alt)
    #expect(field.cursor == 14)
    for _ in 0..<6 { press(.left, []) }
    press(.character("w"), .control)
    #expect(field.text == " three" && field.cursor == 0)
    press(.right, [])
    press(.character("d"), .alt)
    #expect(field.text == " ")
  }

  @Test("a grid assigns columns and rows the size their views need, and the rest to flexible ones")
  func grid() throws {
    let grid = GridView(columnSpacing: 1)
    grid.flexibleColumns = [1]
    grid.layoutMargins = Insets(left: 1)
    let (load, memory) = (ProgressView(progress: 0.5), ProgressView(progress: 1))
    grid.addRow(with: [Label("Load"), load, Label("1")])
    grid.addRow(with: [Label("Memory"), memory, Label("20 %")])
    let list = Label("rest")
    grid.addRow(with: [Label("List"), list], isFlexible: true)
    #expect(try shown(grid, width: 17, height: 4) == " Load   ██·· 1\n Memory ████ 20 %\n List   rest")
    #expect(list.frame == Rect(x: 8, y: 2, width: 4, height: 2))
    // The first columns and rows get what they need.
    #expect(try shown(grid, width: 6, height: 1) == " Load")
    grid.removeRow(at: 0)
    grid.removeRow(at: 7)
    #expect(try shown(grid, width: 17, height: 2) == " Memory ████ 20 %\n List   rest" && grid.rowCount == 2)
    #expect(grid.sizeThatFits(Size(width: 3, height: 9)) == Size(width: 17, height: 2))
  }

  @Test("a grid measures its views once per layout, and again only those that get less than they need")
  func measurements() throws {
    final class Measured: View {
      var count = 0
      override func sizeThatFits(_ size: Size) -> Size {
        count += 1
        return Size(width: 4, height: 1)
      }
    }
    let views = (0..<6).map { _ in Measured() }
    let grid = GridView(columnSpacing: 1, frame: Rect(x: 0, y: 0, width: 20, height: 5))
    grid.flexibleColumns = [1]
    grid.addRow(with: Array(views[0..<3]))
    grid.addRow(with: Array(views[3..<6]))
    grid.layoutIfNeeded()
    #expect(views.map(\.count) == [1, 1, 1, 1, 1, 1])
    #expect(views.map(\.frame.size.width) == [4, 10, 4, 4, 10, 4])
    _ = grid.sizeThatFits(Size(width: 20, height: 5))
    #expect(views.map(\.count) == [2, 2, 2, 2, 2, 2])
    grid.frame.size.width = 6
    grid.layoutIfNeeded()
    #expect(views.map(\.count) == [3, 3, 4, 3, 3, 4])
  }

  @Test("an empty paste, as of an image, leaves the selection of a text field alone")
  func emptyPaste() {
    let field = TextField(text: "abc")
    field.selectedRange = 1..<3
    field.pasted("", isTruncated: false)
    #expect(field.text == "abc" && field.selectedRange == 1..<3)
    field.pasted("x", isTruncated: false)
    #expect(field.text == "ax")
  }

  @Test("a text field selects with Shift and the mouse, and typed text replaces the selection")
  func selection() throws {
    let window = Window(frame: Rect(x: 0, y: 0, width: 40, height: 3))
    let field = TextField(prompt: "> ", text: "one two three", frame: Rect(x: 1, y: 0, width: 9, height: 1))
    window.addSubview(field)
    field.becomeFirstResponder()
    func press(_ key: KeyEvent.Key, _ modifiers: KeyModifiers = []) { window.sendEvent(.type(key, modifiers)) }
    press(.left, .shift)
    press(.left, [.shift, .control])
    #expect(field.selectedText == "three" && field.selectedRange == 8..<13 && field.cursor == 8)
    press(.left)
    #expect(field.selectedRange == nil && field.cursor == 8)
    press(.home, .shift)
    press(.right)
    #expect(field.cursor == 8 && field.selectedText == "")
    press(.home, .shift)
    press(.character("x"))
    #expect(field.text == "xthree" && field.cursor == 1)
    press(.end, .shift)
    press(.character("w"), .control)
    #expect(field.text == "x")
    press(.character("y"), .control)
    #expect(field.text == "xthree")
    press(.left, .shift)
    press(.backspace)
    field.selectedRange = 1..<3
    press(.delete)
    #expect(field.text == "xre" && field.cursor == 1)
    field.selectedRange = -5..<2
    window.sendEvent(.paste("12\n", isTruncated: false))
    #expect(field.text == "12 e" && field.cursor == 3 && field.selectedRange == nil)
    // Selecting with the mouse, also beyond either side of the field.
    field.text = "abcdefghij"
    // From here on, the end of the text is visible.
    #expect(field.textCursor?.position.x == 8)
    window.sendEvent(.press(5, 0))
    window.sendEvent(.drag(7, 0))
    #expect(field.selectedText == "gh")
    window.sendEvent(.drag(30, 0))
    #expect(field.selectedText == "ghij")
    for text in ["def", "cdef", "bcdef", "abcdef", "abcdef"] {
      window.sendEvent(.drag(0, 2))
      #expect(field.textCursor != nil && field.selectedText == text)
    }
    window.sendEvent(.release(0, 2))
    window.sendEvent(.press(4, 0))
    #expect(field.selectedRange == nil)
  }

  @Test("every delete key deletes the selection, and every movement key clears it")
  func keysAndSelection() {
    let window = Window(frame: Rect(x: 0, y: 0, width: 40, height: 3))
    let deleting: [(KeyEvent.Key, KeyModifiers)] = [
      (.backspace, []), (.delete, []), (.character("h"), .control), (.character("d"), .control),
      (.character("u"), .control), (.character("k"), .control), (.character("w"), .control), (.backspace, .control),
      (.backspace, .alt), (.character("d"), .alt), (.delete, .control),
    ]
    for (number, (key, modifiers)) in deleting.enumerated() {
      let field = TextField(text: "one two three", frame: Rect(x: 0, y: 0, width: 40, height: 1))
      window.addSubview(field)
      field.becomeFirstResponder()
      field.selectedRange = 4..<8
      // Nothing was deleted yet, so nothing is inserted or replaced.
      window.sendEvent(.type(.character("y"), .control))
      #expect(field.text == "one two three" && field.selectedRange == 4..<8)
      window.sendEvent(.type(key, modifiers))
      #expect(field.text == "one three" && field.cursor == 4 && field.selectedRange == nil, "\(key) \(modifiers)")
      window.sendEvent(.type(.character("y"), .control))
      #expect(field.text == (number < 4 ? "one three" : "one two three"), "\(key) \(modifiers)")
    }
    let moving: [(KeyEvent.Key, KeyModifiers, Int)] = [
      (.left, [], 4), (.right, [], 8), (.character("b"), .control, 4), (.character("f"), .control, 8), (.home, [], 0),
      (.end, [], 13), (.character("a"), .control, 0), (.character("e"), .control, 13),
    ]
    for (key, modifiers, cursor) in moving {
      let field = TextField(text: "one two three", frame: Rect(x: 0, y: 0, width: 40, height: 1))
      window.addSubview(field)
      field.becomeFirstResponder()
      field.selectedRange = 4..<8
      window.sendEvent(.type(key, modifiers))
      #expect(field.cursor == cursor && field.selectedRange == nil, "\(key) \(modifiers)")
    }
  }

  @Test("a selection is copied to the device's clipboard unless it is secret")
  func copying() throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 2))
      let window = Window()
      let field = TextField(text: "naïve 世界", frame: Rect(x: 0, y: 0, width: 20, height: 1))
      window.addSubview(field)
      field.becomeFirstResponder()
      let application = Application(device: terminal, window: window)
      try application.start()
      for (isSecure, text) in [(true, nil), (false, "世界")] as [(Bool, String?)] {
        field.isSecureTextEntry = isSecure
        field.selectedRange = 6..<8
        terminal.press(.character("w"), modifiers: .alt)
        try time.advance(by: .milliseconds(100))
        #expect(terminal.clipboard == text && field.selectedText == "世界")
      }
      #expect(terminal.errors == [])
      application.finish()
    }
  }
}
