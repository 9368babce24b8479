// SPDX-License-Identifier: Apache-2.0

/// One line of text that is typed.
///
/// Characters are inserted at the cursor, which Left, Right, Home, End and a click move; Backspace and Delete remove
/// one. A pasted text gets blanks in place of its line ends. The keys of shells edit the line too:
///
/// | keys | |
/// |---|---|
/// | Ctrl-A, Ctrl-E, Ctrl-B, Ctrl-F | to the beginning, to the end, back and forth by a character |
/// | Alt-B, Alt-F, Ctrl or Alt with Left or Right | back and forth by a word |
/// | Ctrl-H, Ctrl-D | delete a character before or behind the cursor |
/// | Ctrl-W, Alt-D, Ctrl or Alt with Backspace, Ctrl with Delete | delete a word |
/// | Ctrl-U, Ctrl-K | delete up to the beginning, or to the end |
/// | Ctrl-Y | insert what was deleted last by one of the keys for words and ends |
///
/// All other keys with Control, Alt or Super, and all others, go to the next responder.
///
/// The corresponding class of UIKit is `UITextField`.
@MainActor
open class TextField: View {
  private var line: TextLine

  /// The text before the input, which cannot be changed by typing.
  public var prompt: String {
    didSet { if prompt != oldValue { setNeedsDisplay() } }
  }
  /// The style of the text.
  public var style = Style.plain {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// Whether a dot is shown for each character.
  public var isSecureTextEntry = false {
    didSet {
      guard isSecureTextEntry != oldValue else { return }
      line.mask = isSecureTextEntry ? "•" : nil
      setNeedsDisplay()
    }
  }
  private var killed = ""
  /// Called when the text was changed by typing or pasting.
  public var textDidChange: ((String) -> Void)?

  /// Makes a text field.
  public init(prompt: String = "", text: String = "", frame: Rect = .zero) {
    self.prompt = prompt
    line = TextLine(text)
    super.init(frame: frame)
  }

  /// The text.
  ///
  /// Setting it puts the cursor at its end.
  public var text: String {
    get { line.text }
    set {
      guard newValue != line.text else { return }
      line = TextLine(newValue, mask: line.mask)
      setNeedsDisplay()
    }
  }

  /// The number of characters before the cursor.
  public var cursor: Int { line.cursor }

  override open var canBecomeFirstResponder: Bool { true }

  /// The cursor of the text, invisible, as the field draws it in its own way: input methods follow it.
  override open var textCursor: TextCursor? {
    let start = prompt.cellWidth
    guard start < bounds.size.width else { return nil }
    line.scroll(toFit: bounds.size.width - start)
    return TextCursor(at: Point(x: min(start + line.cursorColumn, bounds.size.width - 1), y: 0) + bounds.origin)
  }

  @discardableResult
  override open func becomeFirstResponder() -> Bool {
    setNeedsDisplay()
    return super.becomeFirstResponder()
  }

  @discardableResult
  override open func resignFirstResponder() -> Bool {
    setNeedsDisplay()
    return super.resignFirstResponder()
  }

  override open func draw(_ canvas: inout Canvas) {
    let start = canvas.draw(prompt, at: .zero, style: style)
    let room = Rect(x: start, y: 0, width: bounds.size.width - start, height: 1)
    guard !room.isEmpty else { return }
    let isFocused = isFirstResponder
    line.scroll(toFit: room.size.width)
    canvas.within(room) { canvas in
      line.forEachVisible(width: room.size.width) { index, column, character in
        let isAtCursor = isFocused && index == line.cursor
        canvas.draw(String(character), at: Point(x: column, y: 0), style: isAtCursor ? style.exchanged : style)
      }
      if isFocused, line.cursor == line.count {
        canvas.draw(" ", at: Point(x: line.cursorColumn, y: 0), style: style.exchanged)
      }
    }
  }

  override open func keyPressed(_ key: KeyEvent) {
    guard key.modifiers.isDisjoint(with: .commands) else {
      if !edits(key) { super.keyPressed(key) }
      return
    }
    switch key.key {
    case .character(let character): edit { $0.insert(CollectionOfOne(character)) }
    case .backspace: edit { $0.deleteBackward() }
    case .delete: edit { $0.deleteForward() }
    case .left: move { $0.cursor -= 1 }
    case .right: move { $0.cursor += 1 }
    case .home: move { $0.cursor = 0 }
    case .end: move { $0.cursor = $0.count }
    default: super.keyPressed(key)
    }
  }

  /// Carries out the keys that edit a line in shells; false if the key is none of them.
  private func edits(_ key: KeyEvent) -> Bool {
    switch (key.key, key.modifiers) {
    case (.character("a"), .control): move { $0.cursor = 0 }
    case (.character("e"), .control): move { $0.cursor = $0.count }
    case (.character("b"), .control): move { $0.cursor -= 1 }
    case (.character("f"), .control): move { $0.cursor += 1 }
    case (.character("b"), .alt), (.left, .control), (.left, .alt): move { $0.cursor -= $0.wordBefore }
    case (.character("f"), .alt), (.right, .control), (.right, .alt): move { $0.cursor += $0.wordAfter }
    case (.character("h"), .control): edit { $0.deleteBackward() }
    case (.character("d"), .control): edit { $0.deleteForward() }
    case (.character("u"), .control): kill { $0.deleteBackward(count: $0.cursor) }
    case (.character("k"), .control): kill { $0.deleteForward(count: $0.count - $0.cursor) }
    case (.character("w"), .control), (.backspace, .control), (.backspace, .alt):
      kill { $0.deleteBackward(count: $0.wordBefore) }
    case (.character("d"), .alt), (.delete, .control): kill { $0.deleteForward(count: $0.wordAfter) }
    case (.character("y"), .control): edit { [killed] in $0.insert(killed) }
    default: return false
    }
    return true
  }

  /// Deletes a part of the text, which Ctrl-Y inserts again; a text that is secret is not kept.
  private func kill(_ body: (inout TextLine) -> String) {
    edit { line in
      let text = body(&line)
      if !text.isEmpty, !isSecureTextEntry { killed = text }
      return !text.isEmpty
    }
  }

  override open func pasted(_ text: String, isTruncated: Bool) {
    edit { $0.insert(text.map { $0.isNewline ? " " : $0 }) }
  }

  override open func touchesBegan(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesBegan(touch) }
    becomeFirstResponder()
    let start = prompt.cellWidth
    let column = touch.location(in: self).x - start
    move { $0.cursor = $0.index(at: column, width: bounds.size.width - start) }
  }
  override open func touchesMoved(_ touch: Touch) { if touch.button != .left { super.touchesMoved(touch) } }
  override open func touchesEnded(_ touch: Touch) { if touch.button != .left { super.touchesEnded(touch) } }
  override open func touchesCancelled(_ touch: Touch) { if touch.button != .left { super.touchesCancelled(touch) } }

  private func move(_ body: (inout TextLine) -> Void) {
    body(&line)
    setNeedsDisplay()
  }

  private func edit(_ body: (inout TextLine) -> Bool) {
    guard body(&line) else { return }
    setNeedsDisplay()
    guard let textDidChange else { return }
    DisplayCallOut.note(closure: ChangeHandler(call: textDidChange))
    textDidChange(line.text)
  }
}

/// What is called when the text was changed, so that a record names it.
private struct ChangeHandler {
  let call: (String) -> Void
}

extension Style {
  /// With the colours exchanged.
  fileprivate var exchanged: Style {
    var style = self
    style.attributes.formSymmetricDifference(.reverse)
    return style
  }
}
