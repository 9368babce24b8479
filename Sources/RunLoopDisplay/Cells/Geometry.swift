// SPDX-License-Identifier: Apache-2.0

/// A cell of a screen, given by its column and row relative to the top left corner.
public struct Point: Hashable, Sendable {
  /// The column, counted from the left.
  public var x: Int
  /// The row, counted from the top.
  public var y: Int

  /// Creates a point.
  public init(x: Int, y: Int) {
    self.x = x
    self.y = y
  }

  /// The cell in the first column of the first row.
  public static let zero = Point(x: 0, y: 0)

  /// Adds two points, and clamps results that overflow.
  public static func + (left: Point, right: Point) -> Point {
    Point(x: left.x.saturatingAdd(right.x), y: left.y.saturatingAdd(right.y))
  }
  /// Subtracts two points, and clamps results that overflow.
  public static func - (left: Point, right: Point) -> Point {
    Point(x: left.x.saturatingSubtract(right.x), y: left.y.saturatingSubtract(right.y))
  }
}

// Coordinates can have any values, so arithmetic on them saturates instead of overflowing.
extension Int {
  func saturatingAdd(_ other: Int) -> Int {
    let (sum, isTooLarge) = addingReportingOverflow(other)
    return isTooLarge ? (other < 0 ? .min : .max) : sum
  }

  func saturatingSubtract(_ other: Int) -> Int {
    let (difference, isTooLarge) = subtractingReportingOverflow(other)
    return isTooLarge ? (other < 0 ? .max : .min) : difference
  }

  /// The length, clamped between 0 and 2^30 so that many of them can be added.
  var clampedLength: Int { Swift.min(Swift.max(0, self), 1 << 30) }
}

/// A width and a height in cells.
public struct Size: Hashable, Sendable {
  /// The number of columns.
  public var width: Int
  /// The number of rows.
  public var height: Int

  /// Creates a size.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// A size without any cells.
  public static let zero = Size(width: 0, height: 0)

  /// Whether the size has no cells.
  public var isEmpty: Bool { width <= 0 || height <= 0 }
}

/// A rectangle of cells.
public struct Rect: Hashable, Sendable {
  /// The cell in the top left corner.
  public var origin: Point
  /// The width and the height.
  public var size: Size

  /// Creates a rectangle from its top left corner and size.
  public init(origin: Point, size: Size) {
    self.origin = origin
    self.size = size
  }

  /// Creates a rectangle from the column and row of its top left corner, its width and its height.
  public init(x: Int, y: Int, width: Int, height: Int) {
    self.init(origin: Point(x: x, y: y), size: Size(width: width, height: height))
  }

  /// A rectangle without any cells at the top left corner.
  public static let zero = Rect(origin: .zero, size: .zero)

  /// The first column.
  public var minX: Int { origin.x }
  /// The first row.
  public var minY: Int { origin.y }
  /// The column after the last.
  public var maxX: Int { origin.x.saturatingAdd(size.width) }
  /// The row below the last.
  public var maxY: Int { origin.y.saturatingAdd(size.height) }
  /// Whether the rectangle has no cells.
  public var isEmpty: Bool { size.isEmpty }

  /// Whether a cell is in the rectangle.
  public func contains(_ point: Point) -> Bool {
    point.x >= minX && point.x < maxX && point.y >= minY && point.y < maxY
  }

  /// Returns the cells that are in both rectangles, or an empty rectangle if there are none.
  public func intersection(_ other: Rect) -> Rect {
    let left = max(minX, other.minX)
    let top = max(minY, other.minY)
    let width = min(maxX, other.maxX).saturatingSubtract(left)
    let height = min(maxY, other.maxY).saturatingSubtract(top)
    guard width > 0, height > 0 else { return Rect(x: left, y: top, width: 0, height: 0) }
    return Rect(x: left, y: top, width: width, height: height)
  }

  /// Returns the smallest rectangle around both, ignoring empty ones.
  public func union(_ other: Rect) -> Rect {
    if isEmpty { return other }
    if other.isEmpty { return self }
    let left = min(minX, other.minX)
    let top = min(minY, other.minY)
    let width = max(maxX, other.maxX).saturatingSubtract(left)
    let height = max(maxY, other.maxY).saturatingSubtract(top)
    return Rect(x: left, y: top, width: width, height: height)
  }

  /// Returns the rectangle moved by an offset.
  public func offset(by delta: Point) -> Rect { Rect(origin: origin + delta, size: size) }
}
