// SPDX-License-Identifier: Apache-2.0

/// The result of a layout: the size of a content, and the frames of the subnodes.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `ASLayout`.
public struct Layout: Hashable, Sendable {
  /// The size of the content.
  public var size: Size
  /// The frames of the node's subnodes, in their order.
  ///
  /// Subnodes after the last of these stay where they are.
  public var frames: [Rect]

  /// Makes a layout.
  ///
  /// - Parameters:
  ///   - size: The size of the content.
  ///   - frames: The frames of the node's subnodes, in their order.
  public init(size: Size, frames: [Rect] = []) {
    self.size = size
    self.frames = frames
  }

  /// The frames as they are in a content that has this one at a place.
  func frames(at origin: Point) -> [Rect] { frames.map { $0.offset(by: origin) } }
}
