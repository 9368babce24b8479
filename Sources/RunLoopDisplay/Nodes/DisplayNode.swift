// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
public import RunLoopTransactions

/// A node that represents a view on any thread, and whose content workers lay out and draw.
///
/// Nodes are created, changed and combined on any thread, and their ``view`` is added to a window on the main thread.
/// At the end of a turn, the changes of all nodes are applied to their views once, no matter how many there were.
/// Contents are handed to workers, and appear when they have been drawn.
///
/// ```Swift
/// let title = DisplayNode(TextContent("Loading"), frame: Rect(x: 0, y: 0, width: 20, height: 1))
/// window.addSubview(title.view)                       // on the main thread
/// title.content = TextContent(summary(of: file))      // on any thread
/// ```
///
/// **Intermediate states.** If a node is marked again while it is being drawn, the finished drawing is shown if it is
/// newer than the current one and has the node's size, and the node is then drawn again. A node that changes faster
/// than it can be drawn therefore shows successive versions. Drawings that are older or of another size are discarded.
/// If a node has nothing to show in its size, the main thread draws visible nodes itself, for up to 4 ms per turn.
/// After that, they keep what they show, or show their ``placeholder``, until a worker has drawn them.
///
/// **Lifetime.** The view is created on the main thread on first use: when it is requested, or when a subnode that is
/// not hidden is shown. A window retains the nodes whose views it contains. A node can be released on any thread; its
/// view is then released on the main thread, in small batches.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `ASDisplayNode`.
public final class DisplayNode: @unchecked Sendable {
  // Sendable: the lock guards the variables, and a lock shared by all nodes of a loop guards those of the tree. The
  // view and its drawing are used only on the main thread.

  /// The maximum number of cells in a content.
  ///
  /// The whole content is drawn and kept, whatever part of it is visible. A larger one is not drawn: its node shows
  /// only the background, which is reported on standard error. To show more, use a ``NodeListView``.
  public static let maximumContent = 1 << 22

  let updates: NodeUpdates
  let workers: WorkerPool
  let lock = Lock()
  @exclusivity(unchecked) var storedContent: any NodeContent
  @exclusivity(unchecked) var properties: NodeProperties
  @exclusivity(unchecked) var state = NodeState()
  /// The batch of the drawing in progress, once it was handed over.
  @exclusivity(unchecked) var batch: DrawingBatch?
  /// Whether there is a view to apply changes to.
  @exclusivity(unchecked) var hasView = false
  /// Whether the frame was set since the last update, which otherwise leaves the view's frame alone.
  @exclusivity(unchecked) var isFrameSet = false
  /// Whether an update is scheduled.
  @exclusivity(unchecked) var isQueued = false
  /// Whether the last layout contained frames for subnodes.
  @exclusivity(unchecked) var placesSubnodes = false
  /// Whether the subnodes differ from those whose views are subviews.
  @exclusivity(unchecked) var needsSubviews = false

  // Guarded by the tree's lock.
  @exclusivity(unchecked) var storedSubnodes: ContiguousArray<DisplayNode> = []
  weak var storedSupernode: DisplayNode?

  /// Used only on the main thread, and by the thread that releases the last reference.
  nonisolated(unsafe) var storedView: NodeView?
  /// The drawing that the view shows, used only on the main thread.
  @exclusivity(unchecked) var shownDrawing: NodeDrawing?
  /// Whether the node is drawn by itself, after a batch has ended its worker; used only on the main thread.
  @exclusivity(unchecked) var drawsAlone = false

  /// Creates a node, without its view.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - content: The content of the node.
  ///   - frame: The frame of the node in its supernode, or of its view in a superview.
  ///   - group: The group of the main loop.
  ///   - workers: The pool whose threads lay out and draw the node.
  /// - Precondition: The group is the main loop's, because other threads have no views, which is checked when it
  ///   gets a view.
  public init(
    _ content: any NodeContent = EmptyContent(), frame: Rect = .zero, group: AsyncTransactionGroup = .main,
    workers: WorkerPool = .shared
  ) {
    updates = .of(group)
    self.workers = workers
    storedContent = content
    properties = NodeProperties()
    properties.frame = frame.clamped
    _ = state.resize(to: properties.frame.size)
  }

  deinit { if let storedView { updates.release(storedView) } }
}

// Properties that can be set on any thread. Each one is set atomically; changing part of a value is not atomic.
extension DisplayNode {
  /// The content of the node, which is not drawn if it has more than ``maximumContent`` cells.
  ///
  /// Setting it marks the node like ``setNeedsDisplay()``. Can be used from any thread.
  public var content: any NodeContent {
    get { lock.withLock { storedContent } }
    set {
      var content = newValue
      lock.lock()
      // The previous content is released when this function returns.
      swap(&content, &storedContent)
      state.mark()
      let isNew = claimUpdate()
      lock.unlock()
      if isNew { updates.enqueue(self) }
      supernode?.subnodeDidChangeContent()
      withExtendedLifetime(content) {}
    }
  }

  /// The frame of the node, in the coordinates of its supernode or of its view's superview.
  ///
  /// Negative widths and heights count as 0. Can be used from any thread.
  public var frame: Rect {
    get { lock.withLock { properties.frame } }
    set { change { $0.frame = newValue.clamped } }
  }

  /// Whether the node and its subnodes are hidden, `false` by default.
  ///
  /// Hidden nodes are not drawn. Can be used from any thread.
  public var isHidden: Bool {
    get { lock.withLock { properties.isHidden } }
    set { change { $0.isHidden = newValue } }
  }

  /// The style of the cells that the content does not draw, or `nil`, the default, if what is below shows through.
  ///
  /// Can be used from any thread.
  public var background: Style? {
    get { lock.withLock { properties.background } }
    set { change { $0.background = newValue } }
  }

  /// Whether the node's view and the views within it receive touches and wheel events, `true` by default.
  ///
  /// Can be used from any thread.
  public var isUserInteractionEnabled: Bool {
    get { lock.withLock { properties.isUserInteractionEnabled } }
    set { change { $0.isUserInteractionEnabled = newValue } }
  }

  /// The name of the view in logs, or `nil` for the name of its type, which is the default.
  ///
  /// Can be used from any thread.
  public var name: String? {
    get { lock.withLock { properties.name } }
    set { change { $0.name = newValue } }
  }

  /// The placeholder shown until the content is first drawn, or `nil` for the background, which is the default.
  ///
  /// Can be used from any thread.
  public var placeholder: NodePlaceholder? {
    get { lock.withLock { properties.placeholder } }
    set { change { $0.placeholder = newValue } }
  }

  /// Whether the main thread may draw the node if it has nothing to show and time is left, `true` by default.
  ///
  /// If it is false, only workers draw the content, and the placeholder is shown meanwhile. Can be used from any
  /// thread.
  public var mayDrawOnMainThread: Bool {
    get { lock.withLock { properties.mayDrawOnMainThread } }
    set { change { $0.mayDrawOnMainThread = newValue } }
  }

  /// Requests that the content be drawn again.
  ///
  /// Calling it again before the content is drawn has no further effect. Can be called from any thread.
  public func setNeedsDisplay() {
    lock.lock()
    state.mark()
    let isNew = claimUpdate()
    lock.unlock()
    if isNew { updates.enqueue(self) }
  }

  /// Whether the newest content is shown in the node's current size.
  ///
  /// Can be read from any thread.
  public var isUpToDate: Bool { lock.withLock { state.isUpToDate } }

  /// Lays out the content on the calling thread, without changing the node.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameter range: The range of sizes to choose from.
  /// - Returns: The size, which is in the range, and the frames that the subnodes would have.
  public func measure(in range: SizeRange) -> Layout { content.layoutWithin(range) }

  private func change(_ body: (inout NodeProperties) -> Void) {
    lock.lock()
    let before = properties
    body(&properties)
    guard properties != before else { return lock.unlock() }
    if properties.frame != before.frame { isFrameSet = true }
    let obsolete = follow(properties)
    let isNew = claimUpdate()
    let isUncovered = before.isHidden && !properties.isHidden && !hasView
    lock.unlock()
    obsolete?.abandon()
    if isNew { updates.enqueue(self) }
    // A view is created for the node.
    if isUncovered { supernode?.subnodesDidChange() }
  }
}

// These methods require the lock.
extension DisplayNode {
  /// Applies properties to the state, and returns a drawing that is no longer needed.
  func follow(_ properties: NodeProperties) -> DrawingBatch? {
    let isResized = state.resize(to: properties.frame.size) != nil
    let isCovered = state.setHidden(properties.isHidden) != nil
    return isResized || isCovered ? batch.take() : nil
  }

  /// Whether the caller must queue the node for an update.
  func claimUpdate() -> Bool {
    guard hasView, !isQueued else { return false }
    isQueued = true
    return true
  }
}
