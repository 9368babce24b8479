// SPDX-License-Identifier: Apache-2.0

// Runs a command when a directory has changed and then been quiet for 200 ms.
//
//     swift run --package-path Examples run-on-change DIRECTORY COMMAND…
//     swift run --package-path Examples run-on-change --demo
//
// SIGINT and SIGTERM end it. The demo makes a burst of changes, and exits with 0 if the command ran once for it.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents

/// Calls an action when nothing was reported for a while.
///
/// It belongs to the main loop.
@MainActor final class Debouncer {
  private let delay: Duration
  private let timer: Timer

  init(_ delay: Duration, action: @escaping @MainActor () -> Void) {
    self.delay = delay
    // It repeats, so that it stays valid, and is parked until something is reported.
    timer = RunLoop.main.schedule(in: delay, repeating: delay) { timer in
      timer.park()
      MainActor.assumeIsolated { action() }
    }
    timer.park()
  }

  func report() { timer.move(after: delay) }
}

@MainActor func watch(_ directory: String, action: @escaping @MainActor () -> Void) throws {
  let debouncer = Debouncer(.milliseconds(200), action: action)
  let files = try FileChangeSource(path: .init(directory), recursive: true) { source, changes in
    if !source.isValid { RunLoop.main.stop() }
    MainActor.assumeIsolated { debouncer.report() }
  }
  try RunLoop.main.add(files, forMode: .common)
}

@MainActor func run(_ command: [String]) {
  Task {
    do {
      let result = try await SpawnedProcess.run(.init(command[0]), command.dropFirst().map { .init($0) })
      print("\(result.outputText)\(command[0]): \(result.status)")
    } catch {
      print("\(command[0]): \(error)")
    }
    fflush(nil)
  }
}

/// Writes ten files in a row, and counts how often the action was called.
@MainActor func demo() throws -> Bool {
  var template = Array("/tmp/run-on-change-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { return false }
  let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  var count = 0
  try watch(directory) { count += 1 }
  for number in 0..<10 {
    close(open("\(directory)/\(number)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
    RunLoop.main.run(mode: .default, for: .milliseconds(20))
  }
  RunLoop.main.run(mode: .default, for: .seconds(1))
  let isRight = count == 1
  print("ten changes, \(count) call")
  for number in 0..<10 { unlink("\(directory)/\(number)") }
  rmdir(directory)
  return isRight
}

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments == ["--demo"] { exit(try demo() ? 0 : 1) }
guard arguments.count >= 2 else {
  print("usage: run-on-change DIRECTORY COMMAND… | --demo")
  exit(2)
}
try watch(arguments[0]) { run(Array(arguments.dropFirst())) }
for signal in [SIGINT, SIGTERM] {
  try RunLoop.main.add(SignalSource(signal: signal) { _, _ in RunLoop.main.stop() }, forMode: .common)
}
RunLoop.main.runUntilStopped()
