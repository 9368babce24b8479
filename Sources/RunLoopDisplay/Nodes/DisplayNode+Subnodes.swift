// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// The node tree, which the views follow at the end of the turn.
extension DisplayNode {
  /// The nodes within this one, from bottom to top.
  ///
  /// Can be read from any thread.
  public var subnodes: [DisplayNode] { Array(updates.treeLock.withLock { storedSubnodes }) }

  /// The node that contains this one, or `nil` if there is none.
  ///
  /// Can be read from any thread.
  public var supernode: DisplayNode? { updates.treeLock.withLock { storedSupernode } }

  /// Adds a node above the other subnodes, and removes it from its current supernode.
  ///
  /// Can be called from any thread.
  ///
  /// - Precondition: This node is not within the added node, and both have the same group.
  public func addSubnode(_ node: DisplayNode) { insertSubnode(node, at: .max) }

  /// Inserts a node among the subnodes, and removes it from its current supernode.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - node: The node.
  ///   - index: The number of subnodes below the node, clamped to the existing subnodes.
  /// - Precondition: This node is not within the inserted node, and both have the same group.
  /// - Complexity: O(n), where n is the number of subnodes and ancestors.
  public func insertSubnode(_ node: DisplayNode, at index: Int) {
    guard node.updates === updates else {
      fatalError(
        "\(node.label) is a node of \(node.updates.loop.threadDescription), and \(label) of \(updates.loop.threadDescription)"
      )
    }
    // The loop may take the last references to these nodes, which are released after the lock.
    var ancestors: ContiguousArray<DisplayNode> = [self]
    updates.treeLock.lock()
    while let next = ancestors[ancestors.count - 1].storedSupernode { ancestors.append(next) }
    let isCycle = ancestors.contains { $0 === node }
    let before = node.storedSupernode
    if !isCycle {
      before?.storedSubnodes.removeAll { $0 === node }
      storedSubnodes.insert(node, at: min(max(0, index), storedSubnodes.count))
      node.storedSupernode = self
    }
    updates.treeLock.unlock()
    guard !isCycle else { fatalError("\(node.label) cannot be within itself") }
    if before !== self { before?.subnodesDidChange() }
    subnodesDidChange()
    withExtendedLifetime(ancestors) {}
  }

  /// Removes the node from its supernode.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n), where n is the number of the supernode's subnodes.
  public func removeFromSupernode() {
    updates.treeLock.lock()
    let before = storedSupernode
    before?.storedSubnodes.removeAll { $0 === self }
    storedSupernode = nil
    updates.treeLock.unlock()
    before?.subnodesDidChange()
  }

  /// Called after subnodes were added, removed, shown or hidden, so that views and layout must be updated.
  func subnodesDidChange() {
    lock.lock()
    needsSubviews = true
    state.mark()
    let isNew = claimUpdate()
    lock.unlock()
    if isNew { updates.enqueue(self) }
  }

  /// Called when a subnode may need another size, which matters if the content places subnodes.
  func subnodeDidChangeContent() {
    lock.lock()
    guard placesSubnodes else { return lock.unlock() }
    state.mark()
    let isNew = claimUpdate()
    lock.unlock()
    if isNew { updates.enqueue(self) }
    supernode?.subnodeDidChangeContent()
  }

  private var label: String { name ?? "a node" }
}

/// A content that stands for a subnode, which draws itself in that place.
///
/// The layout of the node's content determines its frame. The subnodes must be in the order of their places.
///
/// ```Swift
/// let row = DisplayNode(StackContent(.vertical, [SubnodeContent(title), SubnodeContent(text)]))
/// row.addSubnode(title)
/// row.addSubnode(text)
/// ```
public struct SubnodeContent: NodeContent {
  /// The node.
  public let node: DisplayNode

  /// Creates a place for a subnode.
  public init(_ node: DisplayNode) { self.node = node }

  /// Returns the size of the node's content, and a frame of that size for the node.
  public func layout(_ size: SizeRange) -> Layout {
    let size = node.measure(in: size).size
    return Layout(size: size, frames: [Rect(origin: .zero, size: size)])
  }
}
