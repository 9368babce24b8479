// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// The tree. Views follow it at the end of the turn.
extension DisplayNode {
  /// The nodes within this one, the lowest first.
  ///
  /// Can be read from any thread.
  public var subnodes: [DisplayNode] { Array(updates.treeLock.withLock { storedSubnodes }) }

  /// The node that this one is in; nil if it is in none.
  ///
  /// Can be read from any thread.
  public var supernode: DisplayNode? { updates.treeLock.withLock { storedSupernode } }

  /// Adds a node above the others; it leaves the node that it is in.
  ///
  /// Can be called from any thread.
  ///
  /// - Precondition: This node is not within the one that is added, and both have the same group.
  public func addSubnode(_ node: DisplayNode) { insertSubnode(node, at: .max) }

  /// Adds a node at a place among the others; it leaves the node that it is in.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - node: The node.
  ///   - index: How many nodes are to lie below it; a number that is too large means all, and a negative one none.
  /// - Precondition: This node is not within the one that is added, and both have the same group.
  /// - Complexity: O(n) in the subnodes and in the nodes above.
  public func insertSubnode(_ node: DisplayNode, at index: Int) {
    guard node.updates === updates else {
      fatalError(
        "\(node.label) is a node of \(node.updates.loop.threadDescription), and \(label) of \(updates.loop.threadDescription)"
      )
    }
    // Whatever is looked at here may have no other reference left, and is released after the lock.
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

  /// Takes the node out of its supernode.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n) in the supernode's subnodes.
  public func removeFromSupernode() {
    updates.treeLock.lock()
    let before = storedSupernode
    before?.storedSubnodes.removeAll { $0 === self }
    storedSupernode = nil
    updates.treeLock.unlock()
    before?.subnodesDidChange()
  }

  /// The subnodes are others, or others of them are hidden: views and layout are to follow.
  func subnodesDidChange() {
    lock.lock()
    needsSubviews = true
    state.mark()
    let isNew = claimUpdate()
    lock.unlock()
    if isNew { updates.enqueue(self) }
  }

  /// A subnode may need another size: the layout is made anew if the content places subnodes.
  func subnodeDidChangeContent() {
    lock.lock()
    guard placesSubnodes else { return lock.unlock() }
    state.mark()
    let isNew = claimUpdate()
    lock.unlock()
    if isNew { updates.enqueue(self) }
  }

  private var label: String { name ?? "a node" }
}

/// The place of a subnode in a content: the node draws itself there.
///
/// Its size is the one that the node's content chooses. The subnodes have to be in the order of their places.
///
/// ```Swift
/// let row = DisplayNode(StackContent(.vertical, [SubnodeContent(title), SubnodeContent(text)]))
/// row.addSubnode(title)
/// row.addSubnode(text)
/// ```
public struct SubnodeContent: NodeContent {
  /// The node.
  public let node: DisplayNode

  /// Makes a place for a subnode.
  public init(_ node: DisplayNode) { self.node = node }

  /// The size of the node's content, and the whole of that as the node's frame.
  public func layout(_ size: SizeRange) -> Layout {
    let size = node.measure(in: size).size
    return Layout(size: size, frames: [Rect(origin: .zero, size: size)])
  }
}
