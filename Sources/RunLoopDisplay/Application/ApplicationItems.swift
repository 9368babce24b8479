// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// What an application has in the main loop while it runs.
@MainActor
struct ApplicationItems {
  /// Handles the events that were queued.
  let eventQueue: RunLoop.Source
  private let observer: RunLoop.Observer?

  init(_ application: Application) {
    let loop = application.loop
    // It is a common mode from here on, and no descriptor can be lacking for it: it has none yet that the default mode
    // has not.
    try? loop.addCommonMode(.tracking)
    TurnPool.install(in: loop)
    _ = AsyncTransactionGroup.of(loop)
    eventQueue = RunLoop.Source(
      order: TurnOrder.eventQueue,
      perform: MainActor.handler { [unowned application] in DisplayCallOut.make { application.handleEvents() } })
    loop.add(eventQueue, forMode: .common)
    // As in UIKit: the mode for receiving events knows the input, and nothing else.
    loop.add(eventQueue, forMode: .eventReceive)
    observer = application.trace.map { _ in
      RunLoop.Observer(
        activities: [.entry, .beforeWaiting, .afterWaiting, .exit], order: TurnOrder.poolPush + 1,
        handler: MainActor.handler { [weak application] _, activity in
          guard let application, let mode = application.loop.currentMode else { return }
          application.trace?.applicationDid(.stage(activity, mode))
        })
    }
    if let observer { loop.add(observer, forMode: .common) }
    application.gestures.start()
  }

  func invalidate() {
    eventQueue.invalidate()
    observer?.invalidate()
  }
}
