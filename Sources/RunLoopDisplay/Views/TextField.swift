// SPDX-License-Identifier: Apache-2.0

/// A view for editing one line of text.
///
/// Characters are inserted at the cursor, which the Left, Right, Home and End keys and clicks move. Backspace and
/// Delete remove a character. Holding Shift with the cursor keys, or dragging the mouse, selects text. Typing,
/// pasting and deleting replace the selection. Line breaks in pasted text are replaced with spaces. The following
/// editing keys of shells are supported too:
///
/// | keys | |
/// |---|---|
/// | Ctrl-A, Ctrl-E, Ctrl-B, Ctrl-F | to the beginning, to the end, back and forth by a character |
/// | Alt-B, Alt-F, Ctrl or Alt with Left or Right | back and forth by a word |
/// | Ctrl-H, Ctrl-D | delete a character before or behind the cursor |
/// | Ctrl-W, Alt-D, Ctrl or Alt with Backspace, Ctrl with Delete | delete a word |
/// | Ctrl-U, Ctrl-K | delete up to the beginning, or to the end |
/// | Ctrl-Y | insert what was deleted last by one of the keys for words and ends |
/// | Alt-W, Super-C, Ctrl-Insert | copy the selection to the clipboard of the device |
///
/// All other keys are passed to the next responder.
///
/// A character consists of at most 31 scalars, such as a letter and 30 marks. Further ones are omitted, whether they
/// are typed, pasted or set.
///
/// The corresponding class of UIKit is `UITextField`.
@MainActor
open class TextField: View {
  private var line: TextLine

  /// The text before the input, which the user cannot edit.
  public var prompt: String {
    didSet { if prompt != oldValue { setNeedsDisplay() } }
  }
  /// The style of the text, plain by default.
  public var style = Style.plain {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// Whether to show a dot for each character, `false` by default.
  ///
  /// If so, the keys for words act on all characters on that side of the cursor, because the words are secret too.
  public var isSecureTextEntry = false {
    didSet {
      guard isSecureTextEntry != oldValue else { return }
      line.mask = isSecureTextEntry ? "•" : nil
      setNeedsDisplay()
    }
  }
  private var killed = ""
  /// The end of the selection opposite to the cursor, or nil if nothing is selected.
  private var anchor: Int?
  /// A closure called after typing or pasting has changed the text, or `nil`, the default.
  public var textDidChange: ((String) -> Void)?

  /// Creates a text field.
  public init(prompt: String = "", text: String = "", frame: Rect = .zero) {
    self.prompt = prompt
    line = TextLine(text)
    super.init(frame: frame)
  }

  /// The text.
  ///
  /// Setting a different text moves the cursor to the end.
  public var text: String {
    get { line.text }
    set {
      guard newValue != line.text else { return }
      line = TextLine(newValue, mask: line.mask)
      anchor = nil
      setNeedsDisplay()
    }
  }

  /// The range of the selected characters, or `nil` if none are selected.
  ///
  /// Setting it moves the cursor to the end of the range, which is clamped to the text.
  public var selectedRange: Range<Int>? {
    get {
      guard let anchor, anchor != line.cursor else { return nil }
      return min(anchor, line.cursor)..<max(anchor, line.cursor)
    }
    set {
      let range = newValue.map { $0.clamped(to: 0..<line.count) }
      anchor = range?.lowerBound
      if let range { line.cursor = range.upperBound }
      setNeedsDisplay()
    }
  }

  /// The selected text, which is empty if nothing is selected.
  public var selectedText: String { selectedRange.map { String(line.characters[$0]) } ?? "" }

  /// The number of characters before the cursor.
  public var cursor: Int { line.cursor }

  override open var canBecomeFirstResponder: Bool { true }

  /// The width of the prompt, which is cut so that ten cells, or half of the field, are left for the text.
  private var promptWidth: Int { min(prompt.cellWidth, max(bounds.size.width / 2, bounds.size.width - 10)) }

  /// The invisible cursor that input methods follow, because the field draws its visible cursor itself.
  override open var textCursor: TextCursor? {
    let start = promptWidth
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
    let start = promptWidth
    canvas.within(Rect(x: 0, y: 0, width: start, height: 1)) { _ = $0.draw(prompt, at: .zero, style: style) }
    let room = Rect(x: start, y: 0, width: bounds.size.width - start, height: 1)
    guard !room.isEmpty else { return }
    let selection = selectedRange
    let isCursorShown = isFirstResponder && selection == nil
    line.scroll(toFit: room.size.width)
    canvas.within(room) { canvas in
      line.forEachVisible(width: room.size.width) { index, column, character in
        let isMarked = selection?.contains(index) ?? (isCursorShown && index == line.cursor)
        canvas.draw(String(character), at: Point(x: column, y: 0), style: isMarked ? style.exchanged : style)
      }
      if isCursorShown, line.cursor == line.count {
        canvas.draw(" ", at: Point(x: line.cursorColumn, y: 0), style: style.exchanged)
      }
    }
  }

  override open func keyPressed(_ key: KeyEvent) {
    guard key.modifiers.isDisjoint(with: .commands) else {
      if !edits(key) { super.keyPressed(key) }
      return
    }
    let selects = key.modifiers.contains(.shift)
    switch key.key {
    case .character(let character): replace { $0.insert(CollectionOfOne(character)) }
    case .backspace: deleteBackward()
    case .delete: deleteForward()
    case .left: moveBackward(selects)
    case .right: moveForward(selects)
    case .home: move(selects) { $0.cursor = 0 }
    case .end: move(selects) { $0.cursor = $0.count }
    default: super.keyPressed(key)
    }
  }

  // Move by a character, or to the end of the selection.
  private func moveBackward(_ selects: Bool = false) {
    move(selects) { [selectedRange] in $0.cursor = (selects ? nil : selectedRange?.lowerBound) ?? $0.cursor - 1 }
  }
  private func moveForward(_ selects: Bool = false) {
    move(selects) { [selectedRange] in $0.cursor = (selects ? nil : selectedRange?.upperBound) ?? $0.cursor + 1 }
  }

  // Delete a character, or the selection.
  private func deleteBackward() { selectedRange == nil ? edit { $0.deleteBackward() } : replace() }
  private func deleteForward() { selectedRange == nil ? edit { $0.deleteForward() } : replace() }

  /// Handles the editing keys of shells, and returns false for all other keys.
  private func edits(_ key: KeyEvent) -> Bool {
    let selects = key.modifiers.contains(.shift)
    switch (key.key, key.modifiers.subtracting(selects && key.key.isArrow ? .shift : [])) {
    case (.character("w"), .alt), (.character("c"), .super), (.insert, .control): copySelection()
    case (.character("a"), .control): move { $0.cursor = 0 }
    case (.character("e"), .control): move { $0.cursor = $0.count }
    case (.character("b"), .control): moveBackward()
    case (.character("f"), .control): moveForward()
    case (.character("b"), .alt), (.left, .control), (.left, .alt):
      move(selects) { $0.cursor -= $0.wordBefore }
    case (.character("f"), .alt), (.right, .control), (.right, .alt):
      move(selects) { $0.cursor += $0.wordAfter }
    case (.character("h"), .control): deleteBackward()
    case (.character("d"), .control): deleteForward()
    case (.character("u"), .control): kill { $0.deleteBackward(count: $0.cursor) }
    case (.character("k"), .control): kill { $0.deleteForward(count: $0.count - $0.cursor) }
    case (.character("w"), .control), (.backspace, .control), (.backspace, .alt):
      kill { $0.deleteBackward(count: $0.wordBefore) }
    case (.character("d"), .alt), (.delete, .control): kill { $0.deleteForward(count: $0.wordAfter) }
    case (.character("y"), .control): if !killed.isEmpty { replace { [killed] in $0.insert(killed) } }
    default: return false
    }
    return true
  }

  /// Deletes the selection or else a part of the text, and keeps it for Ctrl-Y unless the text is secret.
  private func kill(_ body: (inout TextLine) -> String) {
    guard selectedRange == nil else {
      if !isSecureTextEntry { killed = selectedText }
      return replace()
    }
    edit { line in
      let text = body(&line)
      if !text.isEmpty, !isSecureTextEntry { killed = text }
      return !text.isEmpty
    }
  }

  /// Copies the selection to the clipboard of the device, unless the text is secret.
  private func copySelection() {
    guard !isSecureTextEntry, selectedRange != nil else { return }
    window?.application?.device.copy(selectedText)
  }

  override open func pasted(_ text: String, isTruncated: Bool) {
    // Terminals report a clipboard without text, such as an image, as an empty paste.
    if !text.isEmpty { replace { $0.insert(text.map { $0.isNewline ? " " : $0 }) } }
  }

  override open func touchesBegan(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesBegan(touch) }
    becomeFirstResponder()
    move(touch.modifiers.contains(.shift), to: touch)
  }
  override open func touchesMoved(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesMoved(touch) }
    move(true, to: touch)
  }
  override open func touchesEnded(_ touch: Touch) { if touch.button != .left { super.touchesEnded(touch) } }
  override open func touchesCancelled(_ touch: Touch) { if touch.button != .left { super.touchesCancelled(touch) } }

  /// Moves the cursor to the mouse, or by one more character if the mouse is beyond an edge.
  private func move(_ selects: Bool, to touch: Touch) {
    let start = promptWidth
    let (column, width) = (touch.location(in: self).x - start, bounds.size.width - start)
    move(selects) { line in
      line.cursor = line.index(at: min(max(0, column), max(0, width - 1)), width: width)
      if selects, column < 0 { line.cursor -= 1 }
      if selects, column >= width { line.cursor += 1 }
    }
  }

  private func move(_ selects: Bool = false, _ body: (inout TextLine) -> Void) {
    anchor = selects ? anchor ?? line.cursor : nil
    body(&line)
    setNeedsDisplay()
  }

  /// Deletes the selection and edits the text in its place.
  private func replace(_ body: (inout TextLine) -> Bool = { _ in false }) {
    let selection = selectedRange
    edit { line in
      if let selection {
        line.cursor = selection.upperBound
        _ = line.deleteBackward(count: selection.count)
      }
      return body(&line) || selection != nil
    }
  }

  private func edit(_ body: (inout TextLine) -> Bool) {
    let isChanged = body(&line)
    if anchor != nil { setNeedsDisplay() }
    anchor = nil
    guard isChanged else { return }
    setNeedsDisplay()
    guard let textDidChange else { return }
    DisplayCallOut.note(closure: ChangeHandler(call: textDidChange))
    textDidChange(line.text)
  }
}

/// A wrapper that identifies the closure in records.
private struct ChangeHandler {
  let call: (String) -> Void
}

extension Style {
  /// The style with foreground and background exchanged.
  fileprivate var exchanged: Style {
    var style = self
    style.attributes.formSymmetricDifference(.reverse)
    return style
  }
}

extension KeyEvent.Key {
  /// Whether the key is an arrow key that moves the cursor.
  fileprivate var isArrow: Bool { self == .left || self == .right }
}
