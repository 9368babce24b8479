// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs the laboratory as its users do, in a process of its own: an experiment that crashes takes no test with it.
///
/// - Parameter arguments: What follows `laboratory`.
/// - Returns: The status, the signal that has ended it as a negative number, and what was printed.
func laboratory(_ arguments: [String]) async throws -> (status: Int32, printed: String) {
  let process = Foundation.Process()
  let output = Foundation.Pipe()
  // They stand beside the tests' program.
  let directories = [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
  process.executableURL = directories.map { $0.appendingPathComponent("laboratory") }.first {
    FileManager.default.isExecutableFile(atPath: $0.path)
  }
  process.arguments = arguments
  process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  // The pool's threads are for other tests meanwhile. They also block signals, which a process would inherit.
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
