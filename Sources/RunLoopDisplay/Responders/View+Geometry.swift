// SPDX-License-Identifier: Apache-2.0

extension View {
  /// A point of this view's coordinates in those of another view of the same window, or of the window if it is nil.
  ///
  /// The coordinates of a view are those of its bounds; those of a view that is in no window are converted by way of
  /// the topmost view.
  public final func convert(_ point: Point, to view: View?) -> Point {
    let view = view ?? root
    return point - bounds.origin + cornerInRoot - view.cornerInRoot + view.bounds.origin
  }

  /// A point of another view's coordinates, or of the window's if it is nil, in those of this view.
  public final func convert(_ point: Point, from view: View?) -> Point { (view ?? root).convert(point, to: self) }

  /// The window, or the topmost view.
  private final var root: View {
    var view = self
    while let superview = view.superview { view = superview }
    return view
  }

  /// Where the top left corner lies in the window, or in the topmost view.
  final var cornerInRoot: Point {
    var corner = Point.zero
    var view = self
    while let superview = view.superview {
      corner = corner + view.frame.origin - superview.bounds.origin
      view = superview
    }
    return corner
  }

  /// The cells of the screen at which the view is seen, if nothing lies above it; empty if it is in no window.
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
