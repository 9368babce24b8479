// SPDX-License-Identifier: Apache-2.0

/// The view of a node, which shows the drawing of the node's content.
///
/// It is created by ``DisplayNode/view``. Setting a property of the node also sets that of the view, and a frame set
/// by the superview is also set on the node.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `_ASDisplayView`.
@MainActor
public final class NodeView: View {
  /// The node, or `nil` if it no longer exists.
  public private(set) weak var node: DisplayNode?
  /// Whether the view is in the view of the supernode, as one of its subnodes.
  var isSubnodes = false
  /// The number of times that changes were applied.
  private(set) var updateCount = 0
  /// Whether foreground and background are exchanged.
  var isReversed = false {
    didSet { if isReversed != oldValue, let drawing { show(drawing) } }
  }
  private var drawing: NodeDrawing?
  private var placeholder: NodePlaceholder?
  private weak var keeper: Window?

  init(_ node: DisplayNode) {
    self.node = node
    super.init()
  }

  override public var drawsContents: Bool { true }

  /// Applies the properties of the node, except for the frame.
  func apply(_ properties: NodeProperties) {
    updateCount += 1
    isHidden = properties.isHidden
    background = properties.background
    isUserInteractionEnabled = properties.isUserInteractionEnabled
    name = properties.name
    if properties.placeholder != placeholder {
      placeholder = properties.placeholder
      setNeedsDisplay()
    }
  }

  /// Shows a drawing of the content, or the placeholder if it is nil.
  func show(_ drawing: NodeDrawing?) {
    self.drawing = drawing
    layer.contents = isReversed ? drawing?.grid.reversed() : drawing?.grid
  }

  /// Draws the placeholder while there is nothing else to show.
  override public func draw(_ canvas: inout Canvas) {
    guard let placeholder else { return }
    canvas.fill(Rect(origin: .zero, size: frame.size), placeholder.character, style: placeholder.style)
  }

  /// Makes sure that changes made during a layout are visible after it.
  override public func layoutSubviews() {
    guard let node else { return }
    node.follow(frame: frame)
    node.updates.drain()
  }

  override public func didMoveToWindow() {
    guard let node, window !== keeper else { return }
    keeper?.keptObjects[ObjectIdentifier(self)] = nil
    if keeper != nil { node.leaveWindow() }
    keeper = window
    guard let window else { return }
    // The view may enter the window in the middle of a layout.
    setNeedsLayout()
    window.keptObjects[ObjectIdentifier(self)] = node
    node.enterWindow()
  }
}

extension Grid {
  /// The cells with their foreground and background exchanged.
  fileprivate func reversed() -> Grid {
    var grid = self
    for y in 0..<size.height {
      for x in 0..<size.width where !self[x, y].isClear {
        grid[x, y].style.attributes.formSymmetricDifference(.reverse)
      }
    }
    return grid
  }
}
