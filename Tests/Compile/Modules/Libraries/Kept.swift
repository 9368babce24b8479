// SPDX-License-Identifier: Apache-2.0

// A library that keeps Foundation's types in its interface, and uses RunLoopKit's inside.
public import Foundation
import RunLoopKit

public final class Pulse: @unchecked Sendable {
  public private(set) var timer: Foundation.Timer?
  private let port = Port()

  public init() {}
  public func start(on loop: Foundation.RunLoop = .main, in mode: Foundation.RunLoop.Mode = .common) {
    let timer = Foundation.Timer(timeInterval: 1, repeats: true) { _ in }
    loop.add(timer, forMode: mode)
    self.timer = timer
    RunLoop.main.add(port, forMode: RunLoop.Mode(mode.rawValue))
  }
}
