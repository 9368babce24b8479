// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
public import RunLoopTransactions

/// Represents a view on every thread: its content and its properties can be set anywhere, and workers lay out and draw
/// its content.
///
/// A node is made, changed, and put together with others on any thread. On the main thread its ``view`` is put into a
/// window. At the end of a turn the changes of all nodes are applied to their views, once, no matter how many there
/// were; the contents are handed to workers, and appear when they are drawn.
///
/// ```Swift
/// let title = DisplayNode(TextContent("Loading"), frame: Rect(x: 0, y: 0, width: 20, height: 1))
/// window.addSubview(title.view)                       // the main thread
/// title.content = TextContent(summary(of: file))      // any thread
/// ```
///
/// **What is visible meanwhile.** A node that is marked again while it is drawn shows the finished drawing, if that is
/// newer than what it shows and of its size, and is drawn again: a node that is changed faster than it can be drawn
/// shows one version after the other. A drawing that is older, or of another size, is not shown. If a node has nothing
/// to show in its size, the main thread draws the visible nodes itself, for up to 4 ms in a turn; beyond that they show
/// what they have, or their ``placeholder``, until a worker has drawn them.
///
/// **Lifetime.** The view is made when it is first needed, on the main thread: when it is asked for, or when a subnode
/// that is not hidden is shown. A window keeps the nodes whose views are in it. A node may be released on any thread:
/// its view is released on the main thread, with others, a few in each turn.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `ASDisplayNode`.
public final class DisplayNode: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock, those of the tree by the lock that all nodes of a loop have in
  // common; the view and what it shows belong to the main thread.

  /// The most cells of a content that are drawn.
  ///
  /// The whole content is drawn, and kept, whatever part of it is visible. A larger one is not drawn: its node shows
  /// the background alone, and that is reported on the standard error. To show more, use a ``NodeListView``.
  public static let maximumContent = 1 << 22

  let updates: NodeUpdates
  let workers: WorkerPool
  let lock = Lock()
  @exclusivity(unchecked) var storedContent: any NodeContent
  @exclusivity(unchecked) var properties: NodeProperties
  @exclusivity(unchecked) var state = NodeState()
  /// The drawing that is under way, once it was handed over.
  @exclusivity(unchecked) var batch: DrawingBatch?
  /// Whether there is a view, to which changes are applied.
  @exclusivity(unchecked) var hasView = false
  /// Whether the frame was set since the last update; the view's own stays if not.
  @exclusivity(unchecked) var isFrameSet = false
  /// Whether an update will come.
  @exclusivity(unchecked) var isQueued = false
  /// Whether the last layout had frames for subnodes.
  @exclusivity(unchecked) var placesSubnodes = false
  /// Whether the subnodes are others than those whose views are subviews.
  @exclusivity(unchecked) var needsSubviews = false

  // Guarded by the lock of the tree.
  @exclusivity(unchecked) var storedSubnodes: ContiguousArray<DisplayNode> = []
  weak var storedSupernode: DisplayNode?

  /// The main thread's, and that of whoever releases the last reference.
  nonisolated(unsafe) var storedView: NodeView?
  /// The main thread's: what the view shows.
  @exclusivity(unchecked) var shownDrawing: NodeDrawing?
  /// The main thread's: the drawing is not to share a worker's block with others, of which one has ended the worker.
  @exclusivity(unchecked) var drawsAlone = false

  /// Makes a node without a view.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - content: The content of the node.
  ///   - frame: The frame in its supernode, or of its view in a superview.
  ///   - group: The group of the main loop.
  ///   - workers: The threads that lay it out and draw it.
  /// - Precondition: The group is that of the main loop; the thread of another loop has no views. That is checked when
  ///   the view is made.
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

// What can be set on any thread. Each of it alone is set at once: a part of a value is changed by who is alone in
// changing it.
extension DisplayNode {
  /// The content of the node; one of more than ``maximumContent`` cells is not drawn.
  ///
  /// Setting it marks the node as ``setNeedsDisplay()`` does. Can be used from any thread.
  public var content: any NodeContent {
    get { lock.withLock { storedContent } }
    set {
      var content = newValue
      lock.lock()
      // The content before is released by this function's end.
      swap(&content, &storedContent)
      state.mark()
      let isNew = claimUpdate()
      lock.unlock()
      if isNew { updates.enqueue(self) }
      supernode?.subnodeDidChangeContent()
      withExtendedLifetime(content) {}
    }
  }

  /// The frame of the node, in the coordinates of its supernode, or of its view's superview.
  ///
  /// A width or height below 0 counts as 0. Can be used from any thread.
  public var frame: Rect {
    get { lock.withLock { properties.frame } }
    set { change { $0.frame = newValue.clamped } }
  }

  /// Whether the node and its subnodes are not shown.
  ///
  /// Hidden nodes are not drawn. Can be used from any thread.
  public var isHidden: Bool {
    get { lock.withLock { properties.isHidden } }
    set { change { $0.isHidden = newValue } }
  }

  /// The style of the cells that the content does not draw; if it is nil, what lies below is visible there.
  ///
  /// Can be used from any thread.
  public var background: Style? {
    get { lock.withLock { properties.background } }
    set { change { $0.background = newValue } }
  }

  /// Whether the node's view, and the views within it, get touches and the wheel's turns.
  ///
  /// Can be used from any thread.
  public var isUserInteractionEnabled: Bool {
    get { lock.withLock { properties.isUserInteractionEnabled } }
    set { change { $0.isUserInteractionEnabled = newValue } }
  }

  /// The name of the view in logs; nil means the name of its type.
  ///
  /// Can be used from any thread.
  public var name: String? {
    get { lock.withLock { properties.name } }
    set { change { $0.name = newValue } }
  }

  /// The placeholder that is visible before the content is drawn for the first time; nil means the background.
  ///
  /// Can be used from any thread.
  public var placeholder: NodePlaceholder? {
    get { lock.withLock { properties.placeholder } }
    set { change { $0.placeholder = newValue } }
  }

  /// Whether the main thread draws the node when it has nothing to show and time is left; the default is true.
  ///
  /// If it is false, only workers call the content, and the placeholder is visible until they have drawn it. Can be
  /// used from any thread.
  public var mayDrawOnMainThread: Bool {
    get { lock.withLock { properties.mayDrawOnMainThread } }
    set { change { $0.mayDrawOnMainThread = newValue } }
  }

  /// Asks for the content to be drawn again.
  ///
  /// Calling it again before that has no further effect. Can be called from any thread.
  public func setNeedsDisplay() {
    lock.lock()
    state.mark()
    let isNew = claimUpdate()
    lock.unlock()
    if isNew { updates.enqueue(self) }
  }

  /// Whether the newest content is shown, in the node's size.
  ///
  /// Can be read from any thread.
  public var isUpToDate: Bool { lock.withLock { state.isUpToDate } }

  /// Lays out the content, on the calling thread, and changes nothing.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameter range: The sizes to choose from.
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
    // A view is made for it.
    if isUncovered { supernode?.subnodesDidChange() }
  }
}

// Under the lock.
extension DisplayNode {
  /// Lets the state know of properties; returns a drawing that is not wanted any more.
  func follow(_ properties: NodeProperties) -> DrawingBatch? {
    let isResized = state.resize(to: properties.frame.size) != nil
    let isCovered = state.setHidden(properties.isHidden) != nil
    return isResized || isCovered ? batch.take() : nil
  }

  /// Whether the caller is to queue the node for an update.
  func claimUpdate() -> Bool {
    guard hasView, !isQueued else { return false }
    isQueued = true
    return true
  }
}
