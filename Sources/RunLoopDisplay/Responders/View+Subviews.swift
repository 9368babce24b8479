// SPDX-License-Identifier: Apache-2.0

extension View {
  /// Adds a view above the others; it leaves the view that it is in.
  ///
  /// - Precondition: The view is not a window, and this view is not within it.
  /// - Complexity: O(n) in the views within the one that is added.
  public final func addSubview(_ view: View) { insertSubview(view, at: subviews.count) }

  /// Adds a view at a place among the others; it leaves the view that it is in.
  ///
  /// - Parameters:
  ///   - view: The view.
  ///   - index: How many views are to lie below it; a number that is too large means all, and a negative one none.
  /// - Precondition: The view is not a window, and this view is not within it.
  public final func insertSubview(_ view: View, at index: Int) {
    guard !(view is Window) else { fatalError("the window \(view.displayName) cannot be a subview") }
    guard !isDescendant(of: view) else { fatalError("the view \(view.displayName) cannot be within itself") }
    // A view that moves within its window stays in it, with its touches and its focus.
    if view.window != nil, view.window !== window { view.removeFromSuperview() }
    if let before = view.superview {
      view.layer.setNeedsCompose()
      before.subviews.removeAll { $0 === view }
    }
    subviews.insert(view, at: min(max(0, index), subviews.count))
    if view.superview == nil { view.layoutRoundAdded = LayoutRound.current }
    view.superview = self
    // The marks of a view that was elsewhere are not known here yet.
    view.propagateMarks()
    if view.window == nil, let window { view.enter(window) }
    view.layer.setNeedsCompose()
  }

  /// Takes the view out of its superview.
  ///
  /// Touches on it, or on a view within it, are cancelled, and so are the gestures that are being recognised there; and
  /// the focus is lost if such a view has it.
  public final func removeFromSuperview() {
    guard let superview else { return }
    layer.setNeedsCompose()
    // Whoever is notified finds the view in its place still, and may have moved it.
    window?.viewWillLeave(self)
    guard self.superview === superview else { return }
    superview.subviews.removeAll { $0 === self }
    self.superview = nil
    guard window != nil else { return }
    setWindow(nil)
    notifyOfWindow()
  }

  /// Puts a subview above the others.
  public final func bringSubviewToFront(_ view: View) {
    guard view.superview === self else { return }
    insertSubview(view, at: subviews.count)
  }

  /// Whether this view is the other view, or within it.
  public final func isDescendant(of view: View) -> Bool {
    var ancestor: View? = self
    while let current = ancestor {
      if current === view { return true }
      ancestor = current.superview
    }
    return false
  }

  private func enter(_ window: Window) {
    setWindow(window)
    notifyOfWindow()
  }

  private func setWindow(_ window: Window?) {
    self.window = window
    recognizersDidMove()
    for view in subviews { view.setWindow(window) }
  }

  private func notifyOfWindow() {
    let window = window
    didMoveToWindow()
    // What it did may have moved the view on.
    for view in subviews where view.window === window { view.notifyOfWindow() }
  }
}
