// SPDX-License-Identifier: Apache-2.0

// What the module shows to others.
import Foundation

/// What beats.
public struct Beat {
  /// Its mode.
  public var mode: RunLoop.Mode
  /// Starts it.
  public func start(on loop: RunLoop, _ body: @escaping @Sendable (Timer) -> Void) {
    loop.add(Timer(timeInterval: 1, repeats: true, block: body), forMode: mode)
  }
}
