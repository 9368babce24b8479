// SPDX-License-Identifier: Apache-2.0

// A library that shows RunLoopKit's types.
import Foundation
import RunLoopKit

/// A timer that a client starts.
public final class Pulse: @unchecked Sendable {
  // Sendable: only the thread that starts it touches the timer.

  /// The timer, once it was started.
  public private(set) var timer: Timer?
  /// Makes a pulse without a timer.
  public init() {}
  /// Starts the timer on a loop.
  public func start(on loop: RunLoop = .main, in mode: RunLoop.Mode = .common) {
    let timer = Timer(timeInterval: 1, repeats: true) { _ in }
    loop.add(timer, forMode: mode)
    self.timer = timer
  }
}
