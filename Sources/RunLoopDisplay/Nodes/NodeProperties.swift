// SPDX-License-Identifier: Apache-2.0

/// What can be set of a node on any thread, and is set of its view on the main thread.
struct NodeProperties: Hashable, Sendable {
  var frame = Rect.zero
  var isHidden = false
  var background: Style?
  var isUserInteractionEnabled = true
  var name: String?
  var placeholder: NodePlaceholder?
  var mayDrawOnMainThread = true
}

/// The placeholder of a node before its content is drawn: a character in every cell.
public struct NodePlaceholder: Hashable, Sendable {
  /// The character.
  public var character: Character
  /// The style of the character.
  public var style: Style

  /// Makes a placeholder.
  public init(_ character: Character = "░", style: Style = Style(attributes: .dim)) {
    self.character = character
    self.style = style
  }
}
