// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

// Drawing on the main thread and on workers.
extension DisplayNode {
  /// Draws the node if necessary, either immediately or on a worker.
  @MainActor
  func display(_ view: NodeView) {
    lock.lock()
    let demand = state.demand
    let mayDrawHere = properties.mayDrawOnMainThread
    let isEmpty = storedContent is EmptyContent
    lock.unlock()
    guard demand != .nothing else { return }
    let isVisible = !view.visibleRect.isEmpty
    if isEmpty || (demand == .drawAtOnce && mayDrawHere && isVisible && updates.hasTimeToDraw) {
      drawHere(view)
    } else if let ticket = begin() {
      updates.handOver(self, ticket, isVisible: isVisible)
    }
  }

  private func begin() -> NodeState.Ticket? { lock.withLock { state.demand == .nothing ? nil : state.begin() } }

  @MainActor
  private func drawHere(_ view: NodeView) {
    guard let ticket = begin() else { return }
    DisplayCallOut.note(content)
    updates.measureDrawing {
      guard let drawing = draw(ticket, Cancellation()) else { return }
      finish(ticket, drawing)
    }
  }

  /// Draws the newest version, or returns nil if the drawing is no longer needed.
  ///
  /// Can be called from any thread.
  func draw(_ ticket: NodeState.Ticket, _ cancellation: Cancellation) -> NodeDrawing? {
    let placesSubnodes = updates.treeLock.withLock { !storedSubnodes.isEmpty }
    lock.lock()
    let drawing = state.start(ticket)
    let content = storedContent
    lock.unlock()
    guard let drawing else { return nil }
    return .make(content, size: drawing.size, placesSubnodes: placesSubnodes, cancellation)
  }

  /// Assigns a batch to a drawing, which can cancel it from then on, unless the drawing is no longer needed.
  func assign(_ batch: DrawingBatch, _ ticket: NodeState.Ticket) -> Bool {
    lock.withLock {
      guard state.underWay?.ticket == ticket else { return false }
      self.batch = batch
      return true
    }
  }

  func wants(_ ticket: NodeState.Ticket) -> Bool { lock.withLock { state.underWay?.ticket == ticket } }

  /// Shows a finished drawing if it is still current.
  @MainActor
  func finish(_ ticket: NodeState.Ticket, _ drawing: NodeDrawing) {
    lock.lock()
    let isCurrent = state.underWay?.ticket == ticket
    let action = state.finish(ticket)
    let batch = isCurrent ? batch.take() : nil
    if action == .apply, let frames = drawing.frames { placesSubnodes = !frames.isEmpty }
    let isNew = state.demand != .nothing && claimUpdate()
    lock.unlock()
    withExtendedLifetime(batch) {}
    if action == .apply { show(drawing) }
    if isNew { updates.enqueue(self) }
  }

  /// Handles a drawing that ended without a result and is not tried again.
  @MainActor
  func fail(_ ticket: NodeState.Ticket, _ error: any Error) {
    switch error as? AsyncTransactionError {
    case .cancelled, .loopHasEnded:
      _ = stop(ticket) { $0.retry(ticket) }
      return
    default: break
    }
    guard stop(ticket, { $0.fail(ticket) }) else { return }
    Diagnostic.transaction.report("the content of a node was not drawn, and is not tried again: \(error)")
  }

  /// Handles a drawing that ended without a result, possibly because of another one, and is tried again by itself.
  @MainActor
  func retry(_ ticket: NodeState.Ticket) {
    drawsAlone = true
    _ = stop(ticket) { $0.retry(ticket) }
  }

  /// Records the end of a drawing, or returns false if it is not in progress.
  private func stop(_ ticket: NodeState.Ticket, _ event: (inout NodeState) -> Void) -> Bool {
    lock.lock()
    guard state.underWay?.ticket == ticket else {
      lock.unlock()
      return false
    }
    event(&state)
    let batch = batch.take()
    let isNew = state.demand != .nothing && claimUpdate()
    lock.unlock()
    withExtendedLifetime(batch) {}
    if isNew { updates.enqueue(self) }
    return true
  }

  /// Shows different content that is unrelated to the current one.
  ///
  /// - Parameter drawing: A drawing made in advance, or nil if the content must be drawn.
  @MainActor
  func reuse(for content: any NodeContent, _ drawing: NodeDrawing?) {
    var content = content
    lock.lock()
    swap(&content, &storedContent)
    let obsolete = state.reuse(drawing.map { $0.grid.size }) == nil ? nil : batch.take()
    let isNew = claimUpdate()
    lock.unlock()
    obsolete?.abandon()
    withExtendedLifetime(content) {}
    if let drawing {
      show(drawing)
    } else {
      shownDrawing = nil
      storedView?.show(nil)
    }
    if isNew { updates.enqueue(self) }
  }

  @MainActor
  private func show(_ drawing: NodeDrawing) {
    // The previous drawing is released at the end of the turn.
    if let before = shownDrawing { TurnPool.current?.keep(before) }
    shownDrawing = drawing
    storedView?.show(drawing)
    guard let frames = drawing.frames, !frames.isEmpty else { return }
    for (subnode, frame) in zip(updates.treeLock.withLock { storedSubnodes }, frames) { subnode.frame = frame }
  }
}
