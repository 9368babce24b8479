// SPDX-License-Identifier: Apache-2.0

/// The view of a node: it shows the drawing of the node's content.
///
/// It is made by ``DisplayNode/view``. A property of the view is replaced when the same property of the node is set; a
/// frame that the superview sets becomes the node's too.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `_ASDisplayView`.
@MainActor
public final class NodeView: View {
  /// The node; nil if it no longer exists.
  public private(set) weak var node: DisplayNode?
  /// Whether it is in the view of the supernode, as one of its subnodes.
  var isSubnodes = false
  /// How many times changes were applied.
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

  /// Takes over what was set of the node, but for the frame.
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

  /// Shows what was drawn of the content; nil: the placeholder.
  func show(_ drawing: NodeDrawing?) {
    self.drawing = drawing
    layer.contents = isReversed ? drawing?.grid.reversed() : drawing?.grid
  }

  /// Draws the placeholder; called while there is nothing else to show.
  override public func draw(_ canvas: inout Canvas) {
    guard let placeholder else { return }
    canvas.fill(Rect(origin: .zero, size: frame.size), placeholder.character, style: placeholder.style)
  }

  /// Takes care that what has been changed within a layout is seen after it.
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
    // The view may enter in the middle of a layout.
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
