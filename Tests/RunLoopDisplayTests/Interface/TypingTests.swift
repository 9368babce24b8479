// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import Testing

@testable import RunLoopDisplay

@Suite("An application on an emulated terminal", .timeLimit(.minutes(20)))
@MainActor
struct TypingTests {
  /// Runs an application that shows a window on a terminal that has sent its replies.
  private func perform(
    _ window: Window, width: Int = 20, height: Int = 5,
    _ body: (HeadlessTerminal, @MainActor () throws -> Void) throws -> Void
  ) throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: width, height: height))
      let application = Application(device: terminal, window: window)
      try application.start()
      let settle: @MainActor () throws -> Void = { try time.advance(by: .milliseconds(40), inMode: application.mode) }
      try settle()
      try body(terminal, settle)
      #expect(terminal.errors == [])
      application.finish()
    }
  }

  @Test(
    "keys and pastes in one read with a click are sent to the view that the click's action focuses",
    arguments: ["abc", "\u{1B}[200~abc\u{1B}[201~"], [false, true])
  func focusByClick(_ input: String, _ isNested: Bool) throws {
    let window = Window()
    let before = TextField(frame: Rect(x: 0, y: 2, width: 20, height: 1))
    let after = TextField(frame: Rect(x: 0, y: 3, width: 20, height: 1))
    let view = View(frame: Rect(x: 0, y: 0, width: 10, height: 1))
    view.addGestureRecognizer(TapGestureRecognizer { _ in after.becomeFirstResponder() })
    for subview in [before, after, view] { window.addSubview(subview) }
    before.becomeFirstResponder()
    try perform(window) { terminal, settle in
      let input = "\u{1B}[<0;4;1M\u{1B}[<0;4;1m" + input
      if isNested {
        // The events of a loop that runs in an action wait for the actions that are triggered there.
        let other = View(frame: Rect(x: 0, y: 1, width: 10, height: 1))
        other.addGestureRecognizer(
          TapGestureRecognizer { _ in
            terminal.send(input.utf8)
            for _ in 0..<3 { _ = RunLoop.main.run(mode: .default, for: .milliseconds(10)) }
            #expect(after.text == "abc")
          })
        window.addSubview(other)
        terminal.click(at: Point(x: 1, y: 1))
      } else {
        terminal.send(input.utf8)
      }
      try settle()
      #expect(before.text == "" && after.text == "abc")
    }
  }

  @Test("the wheel in one read with a click acts on the views that the click's action leaves")
  func wheelAfterClick() throws {
    let window = Window()
    let view = ScrollView(frame: Rect(x: 0, y: 0, width: 10, height: 5))
    view.contentSize = Size(width: 10, height: 50)
    view.addGestureRecognizer(TapGestureRecognizer { [weak view] _ in view?.isUserInteractionEnabled = false })
    window.addSubview(view)
    try perform(window) { terminal, settle in
      terminal.send("\u{1B}[<0;4;3M\u{1B}[<0;4;3m\u{1B}[<65;4;3M".utf8)
      try settle()
      #expect(view.contentOffset == .zero)
    }
  }

  @Test("wide characters are typed, clipped at the field's edge, and erased")
  func wide() throws {
    let window = Window()
    let field = TextField(prompt: ">", frame: Rect(x: 0, y: 0, width: 8, height: 1))
    window.addSubview(field)
    window.addSubview(Label("|", frame: Rect(x: 8, y: 0, width: 1, height: 1)))
    field.becomeFirstResponder()
    try perform(window) { terminal, settle in
      terminal.type("a漢字")
      try settle()
      #expect(terminal.line(0) == ">a漢字  |")
      terminal.type("é世")
      try settle()
      #expect(terminal.line(0) == "> 字é世 |" && field.text == "a漢字é世")
      for _ in 0..<4 { terminal.press(.backspace) }
      try settle()
      #expect(terminal.line(0) == ">a      |")
    }
  }

  @Test("a wide character half covered by another view or clipped at an edge becomes a blank")
  func halves() throws {
    let window = Window()
    window.addSubview(Label("漢字漢字", frame: Rect(x: 0, y: 0, width: 8, height: 1)))
    let cover = Label("x", frame: Rect(x: 3, y: 0, width: 1, height: 1))
    window.addSubview(cover)
    let box = View(frame: Rect(x: 1, y: 1, width: 4, height: 1))
    let inner = Label("漢字漢", frame: Rect(x: -1, y: 0, width: 6, height: 1))
    box.addSubview(inner)
    window.addSubview(box)
    try perform(window) { terminal, settle in
      #expect(terminal.line(0) == "漢 x漢字" && terminal.line(1) == "  字")
      cover.frame.origin.x = 4
      inner.frame.origin.x = 0
      try settle()
      #expect(terminal.line(0) == "漢字x 字" && terminal.line(1) == " 漢字")
      cover.isHidden = true
      try settle()
      #expect(terminal.line(0) == "漢字漢字")
    }
  }

  @Test("when the wheel scrolls a list, only the rows that come into view are sent")
  func bytes() throws {
    let window = Window()
    let list = ListView { index, reused in
      let row = reused ?? ListRow()
      row.text = "row \(index) " + String(repeating: "abcdefgh", count: 10)
      return row
    }
    list.rowCount = 1_000_000
    list.frame = Rect(x: 0, y: 0, width: 100, height: 40)
    window.addSubview(list)
    list.becomeFirstResponder()
    try perform(window, width: 100, height: 40) { terminal, settle in
      let whole = try #require(terminal.frameBytes.last)
      // The second frame may be redrawn in full too, because of the capabilities that the terminal reported.
      for _ in 0..<2 {
        terminal.mouse(.wheel(.down), at: Point(x: 5, y: 5))
        try settle()
      }
      let scrolled = try #require(terminal.frameBytes.last)
      #expect(scrolled > 0 && scrolled * 8 < whole, "\(scrolled) of \(whole)")
      #expect(terminal.line(0).hasPrefix("row 6 ") && terminal.line(39).hasPrefix("row 45 "))
    }
  }

  @Test("clusters shown before the terminal granted them are redrawn whole, though nothing changed")
  func lateGrant() throws {
    for features in [HeadlessTerminal.Features.all, .none] {
      try VirtualTime.asMain { time in
        let terminal = HeadlessTerminal(size: Size(width: 20, height: 2), features: features)
        let window = Window()
        window.addSubview(Label("👨‍👩‍👧|", frame: Rect(x: 0, y: 0, width: 20, height: 1)))
        let application = Application(device: terminal, window: window)
        try application.start()
        try time.advance(by: .seconds(1))
        #expect(terminal.screen == (features.clusters ? "👨‍👩‍👧|" : "👨|"))
        // At most two frames, and no second one without a grant.
        #expect(terminal.frameBytes.count == (features.clusters ? 2 : 1), "\(terminal.frameBytes)")
        application.finish()
      }
    }
  }

  @Test("a terminal that grants clusters gets no extra frame if none is shown")
  func grantWithoutClusters() throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 2))
      let window = Window()
      window.addSubview(Label("漢字 é", frame: Rect(x: 0, y: 0, width: 20, height: 1)))
      let application = Application(device: terminal, window: window)
      try application.start()
      try time.advance(by: .seconds(1))
      #expect(terminal.screen == "漢字 é" && terminal.frameBytes.count == 1)
      application.finish()
    }
  }

  @Test("the example of the documentation runs on an emulated terminal")
  func example() throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 3))
      let window = Window()
      let field = TextField(prompt: "> ", frame: Rect(x: 0, y: 0, width: 20, height: 1))
      window.addSubview(field)
      field.becomeFirstResponder()
      let application = Application(device: terminal, window: window)
      time.at(.milliseconds(100)) { MainActor.assumeIsolated { terminal.type("abc") } }
      time.at(.milliseconds(200)) {
        MainActor.assumeIsolated {
          #expect(terminal.screen == "> abc")
          application.terminate()
        }
      }
      try application.run()
      #expect(time.elapsed == .milliseconds(200))
    }
  }

  @Test("a click and a lone Escape reach the views, and a terminal's hang-up ends the application")
  func clickAndEnd() throws {
    final class Root: Window {
      var keys: [KeyEvent.Key] = []
      override func keyPressed(_ key: KeyEvent) { keys.append(key.key) }
    }
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 5))
      let window = Root()
      var presses = 0
      window.addSubview(Button("ok", frame: Rect(x: 4, y: 2, width: 2, height: 1)) { presses += 1 })
      let application = Application(device: terminal, window: window)
      time.at(.milliseconds(100)) { MainActor.assumeIsolated { terminal.click(at: Point(x: 5, y: 2)) } }
      time.at(.milliseconds(200)) { MainActor.assumeIsolated { terminal.press(.escape) } }
      time.at(.milliseconds(300)) { MainActor.assumeIsolated { terminal.hangUp() } }
      let end = try application.run()
      #expect(end == .hungUp && presses == 1 && window.keys == [.escape] && !terminal.isOpen)
      #expect(time.elapsed == .milliseconds(300))
    }
  }
}
