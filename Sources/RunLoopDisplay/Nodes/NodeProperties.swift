// SPDX-License-Identifier: Apache-2.0

/// The properties of a node, which are set on any thread and applied to its view on the main thread.
struct NodeProperties: Hashable, Sendable {
  var frame = Rect.zero
  var isHidden = false
  var background: Style?
  var isUserInteractionEnabled = true
  var name: String?
  var placeholder: NodePlaceholder?
  var mayDrawOnMainThread = true
}

/// A placeholder that fills a node with a character before its content is drawn.
public struct NodePlaceholder: Hashable, Sendable {
  /// The character.
  public var character: Character
  /// The style of the character.
  public var style: Style

  /// Creates a placeholder.
  public init(_ character: Character = "░", style: Style = Style(attributes: .dim)) {
    self.character = character
    self.style = style
  }
}
