// SPDX-License-Identifier: Apache-2.0

// The module's public interface.
import Foundation

/// A repeating timer.
public struct Beat {
  /// The mode of the timer.
  public var mode: RunLoop.Mode
  /// Starts the timer on a loop.
  public func start(on loop: RunLoop, _ body: @escaping @Sendable (Timer) -> Void) {
    loop.add(Timer(timeInterval: 1, repeats: true, block: body), forMode: mode)
  }
}
