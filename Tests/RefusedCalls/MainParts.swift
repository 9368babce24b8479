// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Dispatch
import Foundation
import RunLoopKit
import TestSupport

import class RunLoopCore.RunLoop
import class RunLoopCore.Timer

// The main loops, ours and Core Foundation's.
extension Parts {
  /// Our loop serves the main queue and the main actor.
  @Sendable static func mainLoop() throws {
    let log = Box<[String]>([])
    let note: @Sendable (String) -> Void = { [loop] word in
      log.value.append(word)
      if log.value.count == 2 { loop.stop() }
    }
    DispatchQueue.main.async { note("queue") }
    Task { @MainActor in note("actor") }
    let result = loop.run(mode: .default, for: .seconds(300))
    try check(result == .stopped, "queue and actor, but has \(log.value)")
  }

  /// Our main loop and Core Foundation's serve each other.
  @Sendable static func foundation() throws {
    // If the loop cannot be created, Foundation terminates the process on first use.
    try check(loop.foundationRunLoop != nil, "Core Foundation's main loop")
    let log = Box<[String]>([])
    let timer = Foundation.Timer(timeInterval: 0.002, repeats: false) { [loop] _ in
      log.value.append("theirs")
      loop.stop()
    }
    Foundation.RunLoop.main.add(timer, forMode: .default)
    _ = loop.run(mode: .default, for: .seconds(300))
    try check(log.value == ["theirs"], "a timer of Core Foundation's in our main loop")
    loop.after(.milliseconds(2)) { _ in log.value.append("ours") }
    let end = Date(timeIntervalSinceNow: 300)
    while log.value.count < 2, Date() < end {
      _ = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true)
    }
    try check(log.value == ["theirs", "ours"], "a timer of ours in Core Foundation's main loop")
  }
}
