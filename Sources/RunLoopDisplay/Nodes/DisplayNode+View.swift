// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// The view, on the main thread.
extension DisplayNode {
  /// The node's view, which is created on first use.
  ///
  /// - Complexity: O(1), because the views of subnodes are created when this one is in a window.
  @MainActor
  public var view: NodeView {
    if let storedView { return storedView }
    updates.checkLoop()
    let view = NodeView(self)
    storedView = view
    lock.lock()
    hasView = true
    needsSubviews = true
    isFrameSet = false
    let properties = properties
    lock.unlock()
    view.frame = properties.frame
    view.apply(properties)
    return view
  }

  /// Whether the view has been created.
  @MainActor
  public var isViewLoaded: Bool { storedView != nil }

  /// Applies changes to the view, and draws the node if it is marked.
  @MainActor
  func update() {
    lock.lock()
    isQueued = false
    let properties = properties
    let isFrameSet = isFrameSet
    self.isFrameSet = false
    let needsSubviews = needsSubviews
    lock.unlock()
    guard let view = storedView else { return }
    if isFrameSet { view.frame = properties.frame }
    view.apply(properties)
    guard let window = view.window else { return }
    if let pipeline = window.application?.pipeline { updates.join(pipeline) }
    if needsSubviews { updateSubviews(of: view) }
    display(view)
  }

  /// Updates the subviews to match the subnodes, ahead of any other subviews.
  @MainActor
  private func updateSubviews(of view: NodeView) {
    lock.withLock { needsSubviews = false }
    let nodes = updates.treeLock.withLock { storedSubnodes }
    for case let left as NodeView in view.subviews where left.isSubnodes && left.node?.supernode !== self {
      left.removeFromSuperview()
      left.isSubnodes = false
      updates.release(left)
    }
    var index = 0
    for node in nodes where node.isViewLoaded || !node.isHidden {
      let subview = node.view
      subview.isSubnodes = true
      if index >= view.subviews.count || view.subviews[index] !== subview { view.insertSubview(subview, at: index) }
      index += 1
    }
  }

  /// Called when the view has entered a window.
  @MainActor
  func enterWindow() {
    lock.lock()
    state.enterWindow()
    needsSubviews = true
    let isNew = claimUpdate()
    lock.unlock()
    if isNew { updates.enqueue(self) }
  }

  /// Called when the view has left its window, which cancels its drawing.
  @MainActor
  func leaveWindow() {
    lock.lock()
    let obsolete = state.leaveWindow() == nil ? nil : batch.take()
    lock.unlock()
    obsolete?.abandon()
  }

  /// Called after code other than the node has set the view's frame.
  @MainActor
  func follow(frame: Rect) {
    lock.lock()
    guard !isFrameSet, properties.frame != frame else { return lock.unlock() }
    properties.frame = frame
    let obsolete = follow(properties)
    let isNew = claimUpdate()
    lock.unlock()
    obsolete?.abandon()
    if isNew { updates.enqueue(self) }
  }
}
