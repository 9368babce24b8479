// SPDX-License-Identifier: Apache-2.0

/// The sizes that a layout may choose from.
///
/// The corresponding type of Texture (AsyncDisplayKit) is `ASSizeRange`.
public struct SizeRange: Hashable, Sendable {
  /// A width or height that means no limit.
  public static let unlimited = 1 << 30

  /// The smallest size.
  public let min: Size
  /// The largest size; each of its sides is at least that of ``min``.
  public let max: Size

  /// Makes a range.
  ///
  /// A negative side counts as 0, a side above ``unlimited`` as that, and a largest size that is smaller than the
  /// smallest size as equal to it.
  ///
  /// - Parameters:
  ///   - min: The smallest size.
  ///   - max: The largest size.
  public init(min: Size = .zero, max: Size = Size(width: unlimited, height: unlimited)) {
    let min = Size(width: Self.clamp(min.width), height: Self.clamp(min.height))
    self.min = min
    self.max = Size(
      width: Swift.max(min.width, Self.clamp(max.width)), height: Swift.max(min.height, Self.clamp(max.height)))
  }

  /// A range of one size.
  public init(exactly size: Size) { self.init(min: size, max: size) }

  /// The size of the range that is nearest to another size.
  public func clamp(_ size: Size) -> Size {
    Size(
      width: Swift.min(Swift.max(size.width, min.width), max.width),
      height: Swift.min(Swift.max(size.height, min.height), max.height))
  }

  /// Whether a size is in the range.
  public func contains(_ size: Size) -> Bool { clamp(size) == size }

  private static func clamp(_ side: Int) -> Int { Swift.min(Swift.max(0, side), unlimited) }
}
