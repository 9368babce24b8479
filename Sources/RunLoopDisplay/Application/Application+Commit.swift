// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// The state of the next frame.
struct FrameState: Hashable {
  /// The application is waiting for the device to finish another frame.
  var isWaitingForDevice = false
  var isSuspended = false
  /// The next frame is presented even if no cell has changed.
  var isPresentationForced = false
  /// The cursor of the previous frame.
  var cursor: TextCursor?
  /// Views are being laid out, and views that are marked meanwhile are part of this frame.
  var isLayingOut = false
}

extension Application {
  /// Requests a commit at the end of this turn.
  func setNeedsCommit() {
    guard !frame.isLayingOut else { return }
    pipeline.setNeedsCommit()
  }

  func addStages() {
    // Also performed as a stage, so that actions are called in a loop that never reaches its wait.
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

  /// Whether a frame can be presented now, or else is postponed until the device is ready.
  private func canPresent() -> Bool {
    guard items != nil, !frame.isSuspended, window.screen.grid.size == device.size else { return false }
    frame.isWaitingForDevice = !device.isReadyForFrame
    return !frame.isWaitingForDevice
  }

  /// Lays out, draws, composes and presents one frame.
  ///
  /// If the device is not ready, nothing happens and all marks are kept. If it becomes unready during layout and
  /// drawing, the frame is presented later.
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
      // The screen already contains the changes, and is no longer damaged.
      frame.isPresentationForced = isChanged
      return
    }
    frame.isPresentationForced = false
    let bytes = isChanged ? device.present(window.screen.grid, scrolls: window.screen.takeScrolls()) : 0
    if bytes > 0 { frameCount += 1 }
    if shown.isEmpty { swap(&shown, &completions) } else { shown += completions; completions.removeAll() }
    trace?.applicationDid(.commit(bytes: bytes))
  }

  /// Calls a block after the frame that shows all changes made so far.
  func whenShown(_ block: @escaping @MainActor @Sendable () -> Void) {
    guard items != nil else { return Transaction.complete(block) }
    completions.append(ShownBlock(call: block))
    setNeedsCommit()
  }

  /// Calls the completion blocks whose frame was presented, or all of them at the end of the application.
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
