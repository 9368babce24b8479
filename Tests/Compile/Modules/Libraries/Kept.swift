// SPDX-License-Identifier: Apache-2.0

// A library that keeps Foundation's types in its interface, and uses RunLoopKit's inside.
public import Foundation
import RunLoopKit

/// A timer that a client starts.
public final class Pulse: @unchecked Sendable {
  // Sendable: only the thread that starts it touches the timer.

  /// The timer, once it was started.
  public private(set) var timer: Foundation.Timer?
  private let port = Port()

  /// Makes a pulse without a timer.
  public init() {}
  /// Starts the timer on a loop.
  public func start(on loop: Foundation.RunLoop = .main, in mode: Foundation.RunLoop.Mode = .common) {
    let timer = Foundation.Timer(timeInterval: 1, repeats: true) { _ in }
    loop.add(timer, forMode: mode)
    self.timer = timer
    RunLoop.main.add(port, forMode: RunLoop.Mode(mode.rawValue))
  }
}
