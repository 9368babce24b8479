// SPDX-License-Identifier: Apache-2.0

extension Window {
  /// Moves the focus to the next responder, or to the previous one, in the order of the views; the last is followed by
  /// the first.
  ///
  /// A view comes before its subviews, and these come in their order. Views that are hidden or disabled, or cannot have
  /// the focus, are skipped, and so are views that do not take it.
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
      if candidates[index].becomeFirstResponder() { return }
      if firstResponder != nil, !candidates.contains(where: { $0 === firstResponder }) { return }
    }
  }

  private func collectCandidates(_ view: View, into candidates: inout [View]) {
    guard !view.isHidden, view.isUserInteractionEnabled else { return }
    if view.canBecomeFirstResponder { candidates.append(view) }
    for subview in view.subviews { collectCandidates(subview, into: &candidates) }
  }
}
