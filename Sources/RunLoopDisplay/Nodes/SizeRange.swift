// SPDX-License-Identifier: Apache-2.0

/// The sizes that a layout may choose from.
///
/// The corresponding type of Texture (AsyncDisplayKit) is `ASSizeRange`.
public struct SizeRange: Hashable, Sendable {
  /// A width or height without a limit.
  public static let unlimited = 1 << 30

  /// The minimum size.
  public let min: Size
  /// The maximum size, whose sides are at least those of ``min``.
  public let max: Size

  /// Creates a range.
  ///
  /// Sides are clamped between 0 and ``unlimited``, and the sides of the maximum are at least those of the minimum.
  ///
  /// - Parameters:
  ///   - min: The minimum size.
  ///   - max: The maximum size.
  public init(min: Size = .zero, max: Size = Size(width: unlimited, height: unlimited)) {
    let min = Size(width: Self.clamp(min.width), height: Self.clamp(min.height))
    self.min = min
    self.max = Size(
      width: Swift.max(min.width, Self.clamp(max.width)), height: Swift.max(min.height, Self.clamp(max.height)))
  }

  /// Creates a range that contains a single size.
  public init(exactly size: Size) { self.init(min: size, max: size) }

  /// Returns the size in the range that is nearest to another size.
  public func clamp(_ size: Size) -> Size {
    Size(
      width: Swift.min(Swift.max(size.width, min.width), max.width),
      height: Swift.min(Swift.max(size.height, min.height), max.height))
  }

  /// Returns whether a size is in the range.
  public func contains(_ size: Size) -> Bool { clamp(size) == size }

  private static func clamp(_ side: Int) -> Int { Swift.min(Swift.max(0, side), unlimited) }
}
