// SPDX-License-Identifier: Apache-2.0

// A library that shows RunLoopKit's types.
import Foundation
import RunLoopKit

public final class Pulse: @unchecked Sendable {
  public private(set) var timer: Timer?
  public init() {}
  public func start(on loop: RunLoop = .main, in mode: RunLoop.Mode = .common) {
    let timer = Timer(timeInterval: 1, repeats: true) { _ in }
    loop.add(timer, forMode: mode)
    self.timer = timer
  }
}
