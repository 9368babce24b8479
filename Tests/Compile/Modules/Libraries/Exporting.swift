// SPDX-License-Identifier: Apache-2.0

// A file of a library that exports RunLoopKit from another file.
import Foundation

/// A timer for clients to start.
public final class Pulse: @unchecked Sendable {
  // Sendable: only the thread that starts the timer uses it.

  /// The timer, or `nil` before the start.
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
