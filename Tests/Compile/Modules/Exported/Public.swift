// SPDX-License-Identifier: Apache-2.0

// What the module shows to others.
import Foundation

public struct Beat {
  public var mode: RunLoop.Mode
  public func start(on loop: RunLoop, _ body: @escaping @Sendable (Timer) -> Void) {
    loop.add(Timer(timeInterval: 1, repeats: true, block: body), forMode: mode)
  }
}
