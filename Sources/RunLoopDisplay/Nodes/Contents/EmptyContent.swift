// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// An empty content, for nodes that have only subnodes or a background.
public struct EmptyContent: NodeContent, Hashable {
  /// Creates an empty content.
  public init() {}
}

/// A content that shows a character in every cell.
public struct FillContent: NodeContent, Hashable {
  /// The character.
  public var character: Character
  /// The style of the character.
  public var style: Style

  /// Creates a content that fills its area.
  public init(_ character: Character = " ", style: Style = .plain) {
    self.character = character
    self.style = style
  }

  /// Fills the area.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    canvas.fill(canvas.visibleRect, character, style: style)
  }
}

/// A content that a closure draws.
public struct DrawnContent: NodeContent {
  private let size: Size?
  private let body: @Sendable (inout Canvas, Cancellation) -> Void

  /// Creates a content.
  ///
  /// - Parameters:
  ///   - size: The size of the content if there is a choice, or `nil` for the largest possible size.
  ///   - draw: A closure that draws the content on any thread; see ``NodeContent/draw(into:_:)``.
  public init(size: Size? = nil, draw: @escaping @Sendable (inout Canvas, Cancellation) -> Void) {
    self.size = size
    body = draw
  }

  /// Chooses the size.
  public func layout(_ size: SizeRange) -> Layout {
    self.size.map { Layout(size: size.clamp($0)) } ?? EmptyContent().layout(size)
  }

  /// Calls the closure.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) { body(&canvas, cancellation) }
}
