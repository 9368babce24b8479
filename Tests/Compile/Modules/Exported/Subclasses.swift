// SPDX-License-Identifier: Apache-2.0

import Foundation

final class Worker: Thread, @unchecked Sendable {
  private(set) var runLoop: RunLoop?
  override func main() { runLoop = .current }
}

final class Receiver: NSObject, PortDelegate {
  func handle(_ message: PortMessage) { print(message.msgid) }
}

extension RunLoop {
  func pump() { run(until: Date()) }
}

extension RunLoop.Mode {
  static let network = RunLoop.Mode("network")
}

protocol Scheduling {
  func add(_ timer: Timer, forMode mode: RunLoop.Mode)
}

extension RunLoop: Scheduling {}
