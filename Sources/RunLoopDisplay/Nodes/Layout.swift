// SPDX-License-Identifier: Apache-2.0

/// The result of a layout: the size of a content and the frames of the subnodes.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `ASLayout`.
public struct Layout: Hashable, Sendable {
  /// The size of the content.
  public var size: Size
  /// The frames of the node's subnodes, in order.
  ///
  /// Any further subnodes keep their frames.
  public var frames: [Rect]

  /// Creates a layout.
  ///
  /// - Parameters:
  ///   - size: The size of the content.
  ///   - frames: The frames of the node's subnodes, in order.
  public init(size: Size, frames: [Rect] = []) {
    self.size = size
    self.frames = frames
  }

  /// Returns the frames relative to a content that contains this one at `origin`.
  func frames(at origin: Point) -> [Rect] { frames.map { $0.offset(by: origin) } }
}
