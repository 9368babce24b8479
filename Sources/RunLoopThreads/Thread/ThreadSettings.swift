// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// A thread's settings, and those that the system rejected.
///
/// The thread's lock guards them.
///
/// Settings that change while the thread runs are applied immediately.
struct ThreadSettings {
  private(set) var name: String?
  private(set) var configuration = Thread.Configuration()
  /// A number that represents the quality of service, for a higher layer that knows the names.
  var quality: Int?
  private(set) var rejected: [Thread.Rejection] = []
  /// The kernel's ID of the thread while it runs.
  private var runningThread: Int32?

  mutating func setName(_ name: String?) {
    self.name = name
    applyName()
  }

  mutating func setConfiguration(_ configuration: Thread.Configuration) {
    self.configuration = configuration
    apply()
  }

  mutating func setStackSize(_ size: Int) { configuration.stackSize = max(0, size) }

  mutating func setNiceness(_ niceness: Int) {
    configuration.niceness = niceness
    applyNiceness()
  }

  /// Applies the settings when the thread starts to run; called on the thread.
  mutating func begin(onThread thread: Int32) {
    runningThread = thread
    applyName()
    apply()
    if let slack = configuration.timerSlack { crl_set_timer_slack(UInt(slack.slackNanoseconds)) }
  }

  /// Records a thread that is already running, without changing it.
  mutating func adopt(_ thread: Int32) { runningThread = thread }

  /// Forgets the thread, which has ended and whose ID may be reused.
  mutating func end() {
    runningThread = nil
    ThreadFace.forgetName()
  }

  private mutating func applyName() {
    guard let runningThread, let name else { return }
    ThreadFace.setName(name, ofThread: runningThread)
    // Never splits a character.
    var bytes: [UInt8] = []
    for character in name {
      guard bytes.count + character.utf8.count <= 15 else { break }
      bytes += character.utf8
    }
    if let number = write(bytes, toNameOf: runningThread) { rejected.append(.name(name, number)) }
  }

  /// Writes the name to the file in `/proc`, which works for any thread of the process.
  private func write(_ bytes: [UInt8], toNameOf thread: Int32) -> Int32? {
    let file = open("/proc/self/task/\(thread)/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return errno }
    defer { close(file) }
    return RunLoopLibC.write(file, bytes, bytes.count) == bytes.count ? nil : errno
  }

  private mutating func apply() {
    applyNiceness()
    guard let runningThread else { return }
    if let processors = configuration.processors {
      let numbers = processors.sorted().map { Int32(clamping: $0) }
      let answer = crl_thread_set_affinity(runningThread, numbers, Int32(numbers.count))
      if answer < 0 { rejected.append(.processors(processors, -answer)) }
    }
  }

  private mutating func applyNiceness() {
    guard let runningThread, let niceness = configuration.niceness else { return }
    let answer = crl_thread_set_niceness(runningThread, Int32(clamping: niceness))
    if answer < 0 { rejected.append(.niceness(niceness, -answer)) }
  }
}
