// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// What is known of the frame that is next.
struct FrameState: Hashable {
  /// The device has another frame under way, and the application waits for it.
  var isWaitingForDevice = false
  /// The device was released for a time.
  var isSuspended = false
  /// The frame is presented even if no cell has changed.
  var isPresentationForced = false
  /// The cursor of the frame before.
  var cursor: TextCursor?
  /// Views are being laid out: what they mark is part of this frame.
  var isLayingOut = false
}

extension Application {
  /// Asks for a commit at the end of this turn.
  func setNeedsCommit() {
    guard !frame.isLayingOut else { return }
    pipeline.setNeedsCommit()
  }

  func addStages() {
    // A loop that does not come to its wait has frames, and so it has the actions.
    pipeline.add(
      .init(
        unnamed: "gestures", order: TurnOrder.queues,
        perform: MainActor.handler { [weak self] in
          guard let self, gestures.hasActions else { return }
          DisplayCallOut.make(pipeline.isCalledOut) { self.gestures.update() }
        }))
    pipeline.add(
      .init(
        unnamed: "layout, display, present", order: TurnOrder.commit,
        perform: MainActor.handler { [weak self] in
          guard let self else { return }
          DisplayCallOut.make(pipeline.isCalledOut) { self.commitFrame() }
        }))
    pipeline.add(
      .init(
        unnamed: "completion blocks", order: TurnOrder.afterCommit,
        perform: MainActor.handler { [weak self] in
          guard let self else { return }
          DisplayCallOut.make(pipeline.isCalledOut) { self.callShown(all: false) }
        }))
  }

  /// Whether a frame can be presented; if the device has another under way, its end is waited for.
  private func canPresent() -> Bool {
    guard items != nil, !frame.isSuspended, window.screen.grid.size == device.size else { return false }
    frame.isWaitingForDevice = !device.isReadyForFrame
    return !frame.isWaitingForDevice
  }

  /// Lays out, lets draw, composes, and presents one frame.
  ///
  /// While the device cannot take it nothing is done: the marks stay where they are. If that changes while views are
  /// laid out and drawn, the frame is presented later.
  private func commitFrame() {
    guard canPresent() else { return }
    frame.isLayingOut = true
    let laidOut = window.layoutRounds()
    frame.isLayingOut = false
    if laidOut > 0 { trace?.applicationDid(.layout(views: laidOut)) }
    let size = window.screen.grid.size
    var drawn = window.display(corner: .zero, clip: Rect(origin: .zero, size: size))
    let isDamaged = window.screen.isDamaged
    drawn += window.screen.compose(window)
    let cursor = window.shownCursor
    let isChanged = isDamaged || frame.isPresentationForced || cursor != frame.cursor
    if cursor != frame.cursor { device.cursor = cursor }
    frame.cursor = cursor
    if drawn > 0 { trace?.applicationDid(.draw(views: drawn)) }
    guard canPresent(), window.screen.grid.size == size else {
      // The screen has it, and is not damaged any more.
      frame.isPresentationForced = isChanged
      return
    }
    frame.isPresentationForced = false
    let bytes = isChanged ? device.present(window.screen.grid, scrolls: window.screen.takeScrolls()) : 0
    if bytes > 0 { frameCount += 1 }
    if shown.isEmpty { swap(&shown, &completions) } else { shown += completions; completions.removeAll() }
    trace?.applicationDid(.commit(bytes: bytes))
  }

  /// Calls a block after the frame that shows what has been changed so far.
  func whenShown(_ block: @escaping @MainActor @Sendable () -> Void) {
    guard items != nil else { return Transaction.complete(block) }
    completions.append(ShownBlock(call: block))
    setNeedsCommit()
  }

  /// Calls the completion blocks whose frame was presented; at the end of the application, all.
  func callShown(all: Bool) {
    if all {
      shown += completions
      completions.removeAll()
    }
    while !shown.isEmpty {
      let blocks = shown
      shown.removeAll()
      for block in blocks {
        if all {
          Transaction.complete(block.call)
        } else {
          DisplayCallOut.note(closure: block)
          block.call()
        }
      }
    }
  }
}
