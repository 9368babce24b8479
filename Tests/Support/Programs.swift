// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a program that was built with the tests.
///
/// - Returns: Its exit status, or the signal that ended it as a negative number, and its standard output.
package func runProgram(_ name: String, _ arguments: [String] = []) throws -> (status: Int32, output: String) {
  let process = Process()
  process.executableURL = Bundle.main.bundleURL.appendingPathComponent(name)
  if !FileManager.default.isExecutableFile(atPath: process.executableURL?.path ?? "") {
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent(name)
  }
  process.arguments = arguments
  // An expected crash needs no backtrace. Some programs count their descriptors and threads, so the instruments'
  // agent, which sleeps in other programs and has some of both, is off.
  let settings = ["SWIFT_BACKTRACE": "enable=no", "RUNLOOP_INSTRUMENTS": "off"]
  process.environment = ProcessInfo.processInfo.environment.merging(settings) { $1 }
  let output = Pipe()
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  try process.start()
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  let isSignal = process.terminationReason == .uncaughtSignal
  return (isSignal ? -process.terminationStatus : process.terminationStatus, text)
}

extension Process {
  /// Runs the program, as `run()` does, in a process with many descriptors.
  ///
  /// To find the last descriptor, Foundation reads `/proc/self/fd` and copies up to 256 bytes behind each entry. With
  /// more than a thousand descriptors the entries fill their buffer of 32 KiB, and the process crashes if the heap of
  /// the calling thread ends there. So the heap gets more room before.
  package func start() throws {
    free(malloc(100 * 1024))
    try run()
  }
}
