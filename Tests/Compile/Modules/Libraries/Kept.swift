// SPDX-License-Identifier: Apache-2.0

// A library with Foundation's types in its interface and RunLoopKit's in its implementation.
public import Foundation
import RunLoopKit

/// A timer for clients to start.
public final class Pulse: @unchecked Sendable {
  // Sendable: only the thread that starts the timer uses it.

  /// The timer, or `nil` before the start.
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
