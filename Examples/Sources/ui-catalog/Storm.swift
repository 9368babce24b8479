// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay

/// A version 0 source that signals itself in each of its call-outs, so that the loop never waits.
@MainActor
final class Storm {
  private(set) var isOver = false
  private let application: Application
  private let framesBefore: Int
  private let end: SuspendingClock.Instant
  private let show: @MainActor (Int) -> Void

  /// Starts a storm.
  ///
  /// - Parameters:
  ///   - duration: The length of the storm.
  ///   - application: The application whose frames are counted.
  ///   - show: Called in each call-out with the frames so far.
  init(_ duration: Duration, of application: Application, _ show: @escaping @MainActor (Int) -> Void) {
    self.application = application
    self.show = show
    framesBefore = application.frameCount
    end = application.loop.now.advanced(by: duration)
    let source = RunLoop.Source { source in
      MainActor.assumeIsolated { self.blow(source) }
    }
    application.loop.add(source, forMode: .common)
    source.signal()
  }

  private func blow(_ source: RunLoop.Source) {
    show(application.frameCount - framesBefore)
    if application.loop.now < end {
      source.signal()
    } else {
      isOver = true
      source.invalidate()
    }
  }
}
