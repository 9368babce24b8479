// SPDX-License-Identifier: Apache-2.0

extension View {
  /// Converts a point from this view's coordinates to those of another view in its window, or of the window for `nil`.
  ///
  /// A view's coordinates are those of its bounds. Without a window, points are converted by way of the topmost view.
  public final func convert(_ point: Point, to view: View?) -> Point {
    let view = view ?? root
    return point - bounds.origin + cornerInRoot - view.cornerInRoot + view.bounds.origin
  }

  /// Converts a point to this view's coordinates from those of another view, or of the window if it is `nil`.
  public final func convert(_ point: Point, from view: View?) -> Point { (view ?? root).convert(point, to: self) }

  /// The window, or the topmost view.
  private final var root: View {
    var view = self
    while let superview = view.superview { view = superview }
    return view
  }

  /// The position of the top left corner in the window, or in the topmost view.
  final var cornerInRoot: Point {
    var corner = Point.zero
    var view = self
    while let superview = view.superview {
      corner = corner + view.frame.origin - superview.bounds.origin
      view = superview
    }
    return corner
  }

  /// The cells of the screen in which the view is visible unless covered, or an empty rectangle without a window.
  final var visibleRect: Rect {
    guard window != nil else { return .zero }
    var rect = Rect(origin: .zero, size: frame.size)
    var view = self
    while true {
      guard !view.isHidden, !rect.isEmpty else { return .zero }
      guard let superview = view.superview else { return rect }
      rect = rect.offset(by: view.frame.origin - superview.bounds.origin)
        .intersection(Rect(origin: .zero, size: superview.frame.size))
      view = superview
    }
  }
}
