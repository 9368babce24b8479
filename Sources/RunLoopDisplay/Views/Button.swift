// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A button that performs an action when it is clicked, or when Enter or Space is pressed while it has the focus.
///
/// The corresponding class of UIKit is `UIButton`.
@MainActor
open class Button: View {
  /// The text.
  public var title: String {
    didSet { if title != oldValue { contentsDidChange() } }
  }
  /// The style of the button, plain by default.
  public var style = Style.plain {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// The style of the button while it has the focus, reversed by default.
  public var focusedStyle = Style.reversed {
    didSet { if focusedStyle != oldValue { setNeedsDisplay() } }
  }
  /// The style of the button while it is held down, reversed and bold by default.
  public var highlightedStyle = Style(attributes: [.reverse, .bold]) {
    didSet { if highlightedStyle != oldValue { setNeedsDisplay() } }
  }
  /// A closure called when the mouse is released above the button, or on Enter or Space; `nil` by default.
  public var action: (() -> Void)?

  /// Whether the mouse is holding the button down, initially `false`.
  public private(set) var isHighlighted = false {
    didSet { if isHighlighted != oldValue { setNeedsDisplay() } }
  }

  /// Creates a button.
  public init(_ title: String, frame: Rect = .zero, action: (() -> Void)? = nil) {
    self.title = title
    self.action = action
    super.init(frame: frame)
  }

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
    let style = isHighlighted ? highlightedStyle : isFirstResponder ? focusedStyle : style
    canvas.draw(title, at: .zero, style: style)
  }

  /// The size of the title.
  override open func sizeThatFits(_ size: Size) -> Size { Size(width: title.cellWidth, height: 1) }

  override open func keyPressed(_ key: KeyEvent) {
    if key == KeyEvent(.enter) || key == KeyEvent(.character(" ")) { press() } else { super.keyPressed(key) }
  }

  override open func touchesBegan(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesBegan(touch) }
    becomeFirstResponder()
    isHighlighted = true
  }

  override open func touchesMoved(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesMoved(touch) }
    isHighlighted = bounds.contains(touch.location(in: self))
  }

  override open func touchesEnded(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesEnded(touch) }
    isHighlighted = false
    if bounds.contains(touch.location(in: self)), receivesInput { press() }
  }

  /// Whether neither the button nor a view around it is hidden or disabled.
  private var receivesInput: Bool {
    sequence(first: self as View, next: \.superview).allSatisfy { !$0.isHidden && $0.isUserInteractionEnabled }
  }

  private func press() {
    guard let action else { return }
    DisplayCallOut.note(closure: CalledBody(action))
    action()
  }

  override open func touchesCancelled(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesCancelled(touch) }
    isHighlighted = false
  }

  /// Keeps single taps on the button from also being recognised by the views around it.
  override open func gestureRecognizerShouldBegin(_ recognizer: GestureRecognizer) -> Bool {
    guard let tap = recognizer as? TapGestureRecognizer, tap.view !== self, tap.tapsRequired == 1 else { return true }
    return tap.button != .left
  }
}
