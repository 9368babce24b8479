// SPDX-License-Identifier: Apache-2.0

extension View {
  /// Adds a view above the other subviews, and removes it from its current superview.
  ///
  /// - Precondition: The view is not a window, and this view is not within it.
  /// - Complexity: O(n), where n is the number of views within the added view.
  public final func addSubview(_ view: View) { insertSubview(view, at: subviews.count) }

  /// Inserts a view among the subviews, and removes it from its current superview.
  ///
  /// - Parameters:
  ///   - view: The view.
  ///   - index: The number of subviews below the view, clamped to the existing subviews.
  /// - Precondition: The view is not a window, and this view is not within it.
  public final func insertSubview(_ view: View, at index: Int) {
    guard !(view is Window) else { fatalError("the window \(view.displayName) cannot be a subview") }
    guard !isDescendant(of: view) else { fatalError("the view \(view.displayName) cannot be within itself") }
    // A view that moves within its window stays in it, and keeps its touches and its focus.
    if view.window != nil, view.window !== window { view.removeFromSuperview() }
    if let before = view.superview {
      view.layer.setNeedsCompose()
      view.sizeMayHaveChanged()
      before.subviews.removeAll { $0 === view }
    }
    subviews.insert(view, at: min(max(0, index), subviews.count))
    if view.superview == nil { view.layoutRoundAdded = LayoutRound.current }
    view.superview = self
    // The marks of a view that was elsewhere have not been propagated to this one.
    view.propagateMarks()
    // Code that was called for the removal may have added it to its window again.
    if view.window !== window { view.enter(window) }
    view.layer.setNeedsCompose()
    view.sizeMayHaveChanged()
  }

  /// Removes the view from its superview.
  ///
  /// Touches on the view or on views within it are cancelled, as are gestures in progress there. If one of these views
  /// has the focus, it loses it.
  public final func removeFromSuperview() {
    guard let superview else { return }
    layer.setNeedsCompose()
    // Code that is called here still finds the view in its place, and may move it.
    window?.viewWillLeave(self)
    guard self.superview === superview else { return }
    superview.subviews.removeAll { $0 === self }
    sizeMayHaveChanged()
    self.superview = nil
    guard window != nil else { return }
    setWindow(nil)
    notifyOfWindow()
  }

  /// Moves a subview above the others.
  public final func bringSubviewToFront(_ view: View) {
    guard view.superview === self else { return }
    insertSubview(view, at: subviews.count)
  }

  /// Whether this view is the other view, or is within it.
  public final func isDescendant(of view: View) -> Bool {
    var ancestor: View? = self
    while let current = ancestor {
      if current === view { return true }
      ancestor = current.superview
    }
    return false
  }

  private func enter(_ window: Window?) {
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
    // The call may have moved the view.
    for view in subviews where view.window === window { view.notifyOfWindow() }
  }
}
