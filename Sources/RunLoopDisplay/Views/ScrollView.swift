// SPDX-License-Identifier: Apache-2.0

/// A view that shows a part of its contents and scrolls with the wheel and the keyboard.
///
/// Each notch of the wheel scrolls three rows. The main loop runs in the tracking mode while the wheel is being turned,
/// and for another 150 ms. The Up, Down, PageUp, PageDown, Home and End keys scroll if the focus is in the view.
///
/// The corresponding class of UIKit is `UIScrollView`.
@MainActor
open class ScrollView: View {
  /// The number of rows or columns that a notch of the wheel scrolls.
  public static let rowsForNotch = 3

  /// The size of the contents, zero by default.
  ///
  /// For scrolling, its width and height are clamped between 0 and 2^30.
  public var contentSize = Size.zero {
    didSet { if contentSize != oldValue { setNeedsLayout() } }
  }
  private let tracking = WheelTracking()

  /// Whether to show a scroll indicator in the last column if the contents are too high, `false` by default.
  public final var showsVerticalScrollIndicator = false {
    didSet { if showsVerticalScrollIndicator != oldValue { setNeedsLayout() } }
  }
  /// Whether to show a scroll indicator in the last row if the contents are too wide, `false` by default.
  public final var showsHorizontalScrollIndicator = false {
    didSet { if showsHorizontalScrollIndicator != oldValue { setNeedsLayout() } }
  }
  private var verticalIndicator: ScrollIndicator?
  private var horizontalIndicator: ScrollIndicator?
  /// The number of rows at the top that do not scroll.
  var fixedRows: Int { 0 }

  override open var drawsContents: Bool { false }
  override open var canBecomeFirstResponder: Bool { true }

  /// The point of the contents that is shown in the top left corner.
  ///
  /// It is clamped so that the contents fill the view, except for the scroll indicators.
  public final var contentOffset: Point {
    get { bounds.origin }
    set { scroll(to: newValue) }
  }

  /// The columns and rows that scroll indicators cover, which depends on whether the contents exceed the view.
  final var covered: Size {
    var covered = Size.zero
    guard showsVerticalScrollIndicator || showsHorizontalScrollIndicator else { return covered }
    let (contents, size) = (clampedContents, bounds.size)
    if showsVerticalScrollIndicator, contents.height > size.height { covered.width = 1 }
    if showsHorizontalScrollIndicator, contents.width > size.width - covered.width { covered.height = 1 }
    // The horizontal indicator may cover the last row.
    if showsVerticalScrollIndicator, contents.height > size.height - covered.height { covered.width = 1 }
    return covered
  }

  /// The size of the visible part of the contents, without the rows that do not scroll.
  final var room: Size {
    let covered = covered
    return Size(
      width: max(0, bounds.size.width - covered.width), height: max(0, bounds.size.height - fixedRows - covered.height))
  }

  final var clampedContents: Size { Rect(origin: .zero, size: contentSize).clamped.size }

  /// The maximum offset.
  private var limit: Point {
    let (contents, room) = (clampedContents, room)
    return Point(x: max(0, contents.width - room.width), y: max(0, contents.height - fixedRows - room.height))
  }

  private func scroll(to offset: Point) {
    let limit = limit
    let offset = Point(x: min(max(0, offset.x), limit.x), y: min(max(0, offset.y), limit.y))
    let before = bounds.origin
    guard offset != before else { return }
    if offset.x == before.x { window?.screen.noteScroll(of: self, below: fixedRows, by: offset.y - before.y) }
    bounds.origin = offset
  }

  /// Scrolls as little as possible to make a rectangle visible, or its top left if it is larger than the view.
  ///
  /// The corresponding function of UIKit is `scrollRectToVisible(_:animated:)`.
  open func scrollRectToVisible(_ rect: Rect) {
    func offset(_ offset: Int, _ length: Int, _ start: Int, _ end: Int) -> Int {
      min(max(offset, end - length), start)
    }
    let (rect, room) = (rect.clamped.offset(by: Point(x: 0, y: -fixedRows)), room)
    contentOffset = Point(
      x: offset(contentOffset.x, room.width, rect.minX, rect.maxX),
      y: offset(contentOffset.y, room.height, rect.minY, rect.maxY))
  }

  /// Clamps the offset and places the scroll indicators.
  ///
  /// Overrides must call `super`.
  override open func layoutSubviews() {
    scroll(to: contentOffset)
    placeIndicators()
  }

  private func placeIndicators() {
    let (size, offset, fixed) = (bounds.size, contentOffset, fixedRows)
    let (contents, covered, room) = (clampedContents, covered, room)
    if let line = indicator(&verticalIndicator, isShown: showsVerticalScrollIndicator, isVertical: true) {
      line.show(
        in: Rect(x: offset.x + size.width - 1, y: offset.y + fixed, width: 1, height: size.height - fixed),
        offset: offset.y, visible: room.height, of: contents.height - fixed)
    }
    if let line = indicator(&horizontalIndicator, isShown: showsHorizontalScrollIndicator, isVertical: false) {
      line.show(
        in: Rect(x: offset.x, y: offset.y + size.height - 1, width: size.width - covered.width, height: 1),
        offset: offset.x, visible: room.width, of: contents.width)
    }
  }

  /// Returns the indicator of one direction, above all other views, or nil if it is not shown.
  private func indicator(_ line: inout ScrollIndicator?, isShown: Bool, isVertical: Bool) -> ScrollIndicator? {
    guard isShown else {
      line?.removeFromSuperview()
      line = nil
      return nil
    }
    let indicator = line ?? ScrollIndicator(isVertical: isVertical)
    line = indicator
    if indicator.superview !== self { addSubview(indicator) }
    if subviews.last !== indicator, !(subviews.last is ScrollIndicator) { bringSubviewToFront(indicator) }
    return indicator
  }

  private var enclosingScrollView: ScrollView? {
    var view = superview
    while let current = view, !(current is ScrollView) { view = current.superview }
    return view as? ScrollView
  }

  /// Scrolls the view or, if it is at its end, the enclosing scroll view.
  override open func wheelTurned(_ wheel: MouseEvent.Wheel, at event: MouseEvent) {
    let step = Self.rowsForNotch
    let before = contentOffset
    switch wheel {
    case .up: contentOffset.y -= step
    case .down: contentOffset.y += step
    case .left: contentOffset.x -= step
    case .right: contentOffset.x += step
    }
    if contentOffset == before, let outer = enclosingScrollView { return outer.wheelTurned(wheel, at: event) }
    tracking.noteWheel(window?.application)
  }

  override open func keyPressed(_ key: KeyEvent) {
    guard key.modifiers.isEmpty else { return super.keyPressed(key) }
    let page = max(1, room.height)
    switch key.key {
    case .up: contentOffset.y -= 1
    case .down: contentOffset.y += 1
    case .pageUp: contentOffset.y -= page
    case .pageDown: contentOffset.y += page
    case .home: contentOffset.y = 0
    case .end: contentOffset.y = contentSize.height
    default: super.keyPressed(key)
    }
  }

  override open func touchesBegan(_ touch: Touch) {
    guard touch.button == .left else { return super.touchesBegan(touch) }
    becomeFirstResponder()
  }
  override open func touchesMoved(_ touch: Touch) { if touch.button != .left { super.touchesMoved(touch) } }
  override open func touchesEnded(_ touch: Touch) { if touch.button != .left { super.touchesEnded(touch) } }
  override open func touchesCancelled(_ touch: Touch) { if touch.button != .left { super.touchesCancelled(touch) } }

  /// Stops tracking the wheel if the view has left its window.
  ///
  /// Overrides must call `super`.
  override open func didMoveToWindow() { if window == nil { tracking.end() } }
}
