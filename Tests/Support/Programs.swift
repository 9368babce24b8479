// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a program that was built beside the tests.
///
/// - Returns: Its status, the signal that has ended it as a negative number, and what it has written on its output.
package func runProgram(_ name: String, _ arguments: [String] = []) throws -> (status: Int32, output: String) {
  let process = Process()
  process.executableURL = Bundle.main.bundleURL.appendingPathComponent(name)
  if !FileManager.default.isExecutableFile(atPath: process.executableURL?.path ?? "") {
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent(name)
  }
  process.arguments = arguments
  // A crash that is expected or found is not to be told at length. Some count their descriptors and threads: the agent
  // of the instruments, which sleeps in other programs, has some of both.
  let settings = ["SWIFT_BACKTRACE": "enable=no", "RUNLOOP_INSTRUMENTS": "off"]
  process.environment = ProcessInfo.processInfo.environment.merging(settings) { $1 }
  let output = Pipe()
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  try process.run()
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  let isSignal = process.terminationReason == .uncaughtSignal
  return (isSignal ? -process.terminationStatus : process.terminationStatus, text)
}
