// SPDX-License-Identifier: Apache-2.0

/// One line of text that is typed.
///
/// Characters are inserted at the cursor, which Left, Right, Home and End move; Backspace and Delete remove one. Keys
/// that are held down with Control or Alt, and all others, go to the next responder. A pasted text gets blanks in place
/// of its line ends.
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
      line = TextLine(newValue)
      setNeedsDisplay()
    }
  }

  /// The number of characters before the cursor.
  public var cursor: Int { line.cursor }

  override open var canBecomeFirstResponder: Bool { true }

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
      var column = -line.hidden
      for (index, character) in line.characters.enumerated() {
        guard column < room.size.width else { return }
        let isAtCursor = isFocused && index == line.cursor
        if column >= 0 {
          canvas.draw(String(character), at: Point(x: column, y: 0), style: isAtCursor ? style.exchanged : style)
        }
        column += Int(Cell(character).width)
      }
      if isFocused, line.cursor == line.characters.count {
        canvas.draw(" ", at: Point(x: column, y: 0), style: style.exchanged)
      }
    }
  }

  override open func keyPressed(_ key: KeyEvent) {
    guard key.modifiers.isDisjoint(with: [.control, .alt]) else { return super.keyPressed(key) }
    switch key.key {
    case .character(let character): edit { $0.insert(CollectionOfOne(character)) }
    case .backspace: edit { $0.deleteBackward() }
    case .delete: edit { $0.deleteForward() }
    case .left: move { $0.cursor -= 1 }
    case .right: move { $0.cursor += 1 }
    case .home: move { $0.cursor = 0 }
    case .end: move { $0.cursor = $0.characters.count }
    default: super.keyPressed(key)
    }
  }

  override open func pasted(_ text: String, isTruncated: Bool) {
    edit { $0.insert(text.map { $0.isNewline ? " " : $0 }) }
  }

  override open func touchesBegan(_ touch: Touch) { becomeFirstResponder() }
  override open func touchesMoved(_ touch: Touch) {}
  override open func touchesEnded(_ touch: Touch) {}
  override open func touchesCancelled(_ touch: Touch) {}

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
