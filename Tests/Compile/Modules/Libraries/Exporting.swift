// SPDX-License-Identifier: Apache-2.0

// A file of a library, another file of which exports RunLoopKit.
import Foundation

public final class Pulse: @unchecked Sendable {
  public private(set) var timer: Timer?
  public init() {}
  public func start(on loop: RunLoop = .main, in mode: RunLoop.Mode = .common) {
    let timer = Timer(timeInterval: 1, repeats: true) { _ in }
    loop.add(timer, forMode: mode)
    self.timer = timer
  }
}
