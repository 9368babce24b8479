// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Makes the loop run in the tracking mode from the first notch of the wheel until some time after the last.
@MainActor
final class WheelTracking {
  /// The time for which the mode is kept after the last notch.
  static let duration = Duration.milliseconds(150)

  private weak var application: Application?
  private var timer: Timer?

  init() {}

  deinit { timer?.invalidate() }

  /// Records that the wheel was turned above a view of an application.
  func noteWheel(_ application: Application?) {
    guard let application else { return }
    if self.application !== application {
      end()
      self.application = application
      timer?.invalidate()
      timer = makeTimer(application.loop)
    }
    timer?.move(after: Self.duration)
    application.push(.tracking, for: self)
  }

  /// Ends the tracking immediately.
  func end() {
    timer?.park()
    application?.popMode(for: self)
  }

  private func makeTimer(_ loop: RunLoop) -> Timer {
    // A one-shot timer would end after its first date. This one repeats, and each of its dates is set explicitly.
    let timer = Timer(
      deadline: loop.now, interval: .seconds(1 << 28), block: MainActor.handler { [weak self] _ in self?.end() })
    timer.park()
    loop.add(timer, forMode: .common)
    return timer
  }
}
