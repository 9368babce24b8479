// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// A thread's settings, and those that the system has rejected: a value behind the thread's lock.
///
/// A setting that is changed while the thread runs is applied to it at once.
struct ThreadSettings {
  private(set) var name: String?
  private(set) var configuration = Thread.Configuration()
  /// A number that represents the quality of service, for a layer above that knows its names.
  var quality: Int?
  private(set) var rejected: [Thread.Rejection] = []
  /// The kernel's id of the thread while it runs.
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

  /// Applies the settings, because the thread runs now.
  ///
  /// Called on the thread.
  mutating func begin(onThread thread: Int32) {
    runningThread = thread
    applyName()
    apply()
    if let slack = configuration.timerSlack { crl_set_timer_slack(UInt(slack.slackNanoseconds)) }
  }

  /// Notes a thread that runs already, and leaves it as it is.
  mutating func adopt(_ thread: Int32) { runningThread = thread }

  /// Forgets the thread, which has ended: its id may be reused for another.
  mutating func end() {
    runningThread = nil
    ThreadFace.forgetName()
  }

  private mutating func applyName() {
    guard let runningThread, let name else { return }
    ThreadFace.setName(name, ofThread: runningThread)
    // A character is kept whole or not at all.
    var bytes: [UInt8] = []
    for character in name {
      guard bytes.count + character.utf8.count <= 15 else { break }
      bytes += character.utf8
    }
    if let number = write(bytes, toNameOf: runningThread) { rejected.append(.name(name, number)) }
  }

  /// Writes the name where it can be written for any thread of the process.
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
