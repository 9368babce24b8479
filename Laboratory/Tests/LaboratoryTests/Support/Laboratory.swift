// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs the laboratory as its users do, in its own process, so that a crashing experiment affects no other test.
///
/// - Parameter arguments: The arguments after `laboratory`.
/// - Returns: The exit status, or the signal that ended it as a negative number, and the output.
func laboratory(_ arguments: [String]) async throws -> (status: Int32, printed: String) {
  let process = Foundation.Process()
  let output = Foundation.Pipe()
  // The program is in the same directory as the tests.
  let directories = [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
  process.executableURL = directories.map { $0.appendingPathComponent("laboratory") }.first {
    FileManager.default.isExecutableFile(atPath: $0.path)
  }
  process.arguments = arguments
  process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  // Leaves the pool's threads, which also block signals that a child would inherit, to other tests.
  let end = AsyncThrowingStream.makeStream(of: String.self)
  Thread.detachNewThread {
    var none = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, nil)
    do {
      try process.run()
      let bytes = output.fileHandleForReading.readDataToEndOfFile()
      end.continuation.yield(String(decoding: bytes, as: UTF8.self))
      process.waitUntilExit()
      end.continuation.finish()
    } catch {
      end.continuation.finish(throwing: error)
    }
  }
  var text = ""
  for try await part in end.stream { text += part }
  let isSignal = process.terminationReason == .uncaughtSignal
  while text.last == "\n" { text.removeLast() }
  return (isSignal ? -process.terminationStatus : process.terminationStatus, text)
}
