// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore

extension RunLoop {
  @discardableResult
  func watch(
    _ descriptor: Int32, _ events: DescriptorSource.Events = .readable, mode: Mode = .default,
    _ handler: @escaping @Sendable (DescriptorSource, DescriptorSource.Events) -> Void = { _, _ in }
  ) -> DescriptorSource {
    let source = DescriptorSource(descriptor: descriptor, events: events, handler: handler)
    do { try add(source, forMode: mode) } catch { Issue.record("\(error)") }
    return source
  }

  func pollSet(_ mode: Mode = .default) -> PollSet? { table.withLock { $0.modes[mode]?.pollSet } }

  /// Waits until this loop, on another thread, has announced this kind of sleep.
  ///
  /// Before its first sleep, it has then also made its last check, under the table's lock, and wants no other sleep.
  func awaitSleep(_ sleeper: WakeState.Sleeper) {
    waitUntil { word.state.sleeper == sleeper && table.withLock { $0.sleepingMode } != nil }
  }
}

/// A loop on the system's clock, which its own thread runs until it is stopped or finished.
final class RunningLoop: Sendable {
  let loop: RunLoop
  let log = Log()
  private let thread: StartedThread<Void>

  /// Starts the thread, which sets up and runs its loop.
  init(_ setUp: @escaping @Sendable (RunLoop, Log) -> Void) {
    let made = Box<RunLoop?>(nil)
    let isMade = Latch()
    let log = log
    thread = startThread {
      let loop = RunLoop.current
      setUp(loop, log)
      made.value = loop
      isMade.open()
      log.write("\(loop.runUntilStopped())")
    }
    isMade.wait()
    guard let loop = made.value else { preconditionFailure("the thread has no loop") }
    self.loop = loop
  }

  /// Waits for the end of the run, and returns the log.
  func result() -> String {
    thread.result()
    return log.text
  }
}
