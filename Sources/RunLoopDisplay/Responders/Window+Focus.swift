// SPDX-License-Identifier: Apache-2.0

extension Window {
  /// Moves the focus to the next or previous responder in the order of the views, wrapping around at the ends.
  ///
  /// A view precedes its subviews, which follow in their order. Views that are hidden or disabled, cannot have the
  /// focus or decline it, or have no room on a small screen are skipped. Scroll views scroll to the new focus.
  ///
  /// - Complexity: O(n), where n is the number of views.
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

  /// The cursor of the view that has the focus, in screen coordinates, or nil if it has none or it is not visible.
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
  /// Whether part of the view is visible or can be scrolled into view, or the view or window has no size yet.
  fileprivate final var isWithinReach: Bool {
    guard let window, !window.bounds.size.isEmpty, frame.size != .zero, visibleRect.isEmpty else { return true }
    guard !frame.isEmpty else { return false }
    var view = superview
    while let current = view, !(current is ScrollView) { view = current.superview }
    return view != nil
  }

  /// Makes the enclosing scroll views show the view.
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
