// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// The sources and observers of a running application in the main loop.
@MainActor
struct ApplicationItems {
  /// The source that handles queued events.
  let eventQueue: RunLoop.Source
  private let observer: RunLoop.Observer?

  init(_ application: Application) {
    let loop = application.loop
    // This cannot fail for lack of a descriptor, because the mode contains no items that the default mode lacks.
    try? loop.addCommonMode(.tracking)
    TurnPool.install(in: loop)
    _ = AsyncTransactionGroup.of(loop)
    eventQueue = RunLoop.Source(
      order: TurnOrder.eventQueue,
      perform: MainActor.handler { [unowned application] in DisplayCallOut.make { application.handleEvents() } })
    loop.add(eventQueue, forMode: .common)
    // As in UIKit, the event-receive mode contains only the input source.
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
