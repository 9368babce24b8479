// SPDX-License-Identifier: Apache-2.0

extension Window {
  /// Moves the focus to the next responder, or to the previous one, in the order of the views; the last is followed by
  /// the first.
  ///
  /// A view comes before its subviews, and these come in their order. Views that are hidden or disabled, or cannot have
  /// the focus, are skipped, and so are views that do not take it, and those for which a small screen has no room.
  /// Scroll views show the one that has got the focus.
  ///
  /// - Complexity: O(n) in the views.
  public final func moveFocus(forward: Bool) {
    var candidates: [View] = []
    collectCandidates(self, into: &candidates)
    guard !candidates.isEmpty else { return }
    let count = candidates.count
    let current = candidates.firstIndex { $0 === firstResponder }
    let start = current ?? (forward ? -1 : count)
    for step in 1...count {
      let index = ((start + (forward ? step : -step)) % count + count) % count
      if candidates[index].becomeFirstResponder() { return candidates[index].scrollIntoView() }
      if firstResponder != nil, !candidates.contains(where: { $0 === firstResponder }) { return }
    }
  }

  /// The cursor of the view that has the focus, on the screen; nil if it has none, or its place is not seen.
  final var shownCursor: TextCursor? {
    guard let view = firstResponder as? View, let cursor = view.textCursor else { return nil }
    let place = cursor.position - view.bounds.origin + view.cornerInRoot
    return view.visibleRect.contains(place) ? TextCursor(at: place, shape: cursor.shape) : nil
  }

  private func collectCandidates(_ view: View, into candidates: inout [View]) {
    guard !view.isHidden, view.isUserInteractionEnabled else { return }
    if view.canBecomeFirstResponder, view.isWithinReach { candidates.append(view) }
    for subview in view.subviews { collectCandidates(subview, into: &candidates) }
  }
}

extension View {
  /// Whether some of the view is seen, or can be by scrolling; true where the view, or the window, has no size yet.
  fileprivate final var isWithinReach: Bool {
    guard let window, !window.bounds.size.isEmpty, frame.size != .zero, visibleRect.isEmpty else { return true }
    guard !frame.isEmpty else { return false }
    var view = superview
    while let current = view, !(current is ScrollView) { view = current.superview }
    return view != nil
  }

  /// Lets the scroll views around the view show it.
  final func scrollIntoView() {
    var rect = bounds
    var view: View = self
    while let superview = view.superview {
      rect = rect.offset(by: view.frame.origin - view.bounds.origin)
      (superview as? ScrollView)?.scrollRectToVisible(rect)
      view = superview
    }
  }
}
