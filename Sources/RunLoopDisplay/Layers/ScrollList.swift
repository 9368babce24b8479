// SPDX-License-Identifier: Apache-2.0

/// The number of rows by which the contents of views have scrolled since the last frame.
@MainActor
struct ScrollList {
  private var moved: [(view: ObjectIdentifier, area: Rect, rows: Int)] = []
  private var hints: [ScrollHint] = []

  init() {}

  mutating func note(_ view: View, below fixed: Int, _ rows: Int) {
    var area = view.visibleRect
    if fixed > 0 {
      area = area.intersection(Rect(origin: view.cornerInRoot + Point(x: 0, y: fixed), size: view.frame.size))
    }
    guard rows != 0, !area.isEmpty else { return }
    let id = ObjectIdentifier(view)
    if let index = moved.firstIndex(where: { $0.view == id }) {
      // A view that was moved meanwhile provides no hint.
      if moved[index].area == area { moved[index].rows += rows } else { moved.remove(at: index) }
    } else {
      moved.append((id, area, rows))
    }
  }

  mutating func removeAll() { moved.removeAll(keepingCapacity: true) }

  /// Returns the hints since the last call.
  mutating func take() -> [ScrollHint] {
    hints.removeAll(keepingCapacity: true)
    for (_, area, rows) in moved where rows != 0 && abs(rows) < area.size.height {
      hints.append(ScrollHint(area: area, rows: rows))
    }
    removeAll()
    return hints
  }
}
