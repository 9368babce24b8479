// SPDX-License-Identifier: Apache-2.0

// Runs a command when a directory has changed and then been quiet for 200 ms. A run in progress is ended first.
//
//     swift run --package-path Examples run-on-change DIRECTORY COMMAND…
//     swift run --package-path Examples run-on-change --demo
//
// SIGINT, SIGTERM and SIGHUP end it and the command. The demo makes two bursts of changes, and exits with 0 if one run
// followed each of them.

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

/// A command that runs once at a time, with the processes that it starts.
@MainActor final class Command {
  private let words: [String]
  private var task: Task<Void, Never>?

  init(_ words: [String]) { self.words = words }

  func restart() {
    let previous = task
    previous?.cancel()
    task = Task {
      await previous?.value
      await run()
    }
  }

  func stop() async {
    task?.cancel()
    await task?.value
  }

  private func run() async {
    var options = SpawnedProcess.Options()
    // Cancelling a run ends its whole process group.
    options.leadsProcessGroup = true
    options.standardError = .standardOutput
    do {
      let result = try await SpawnedProcess.run(words[0], Array(words.dropFirst()), options: options)
      print("\(result.outputText)\(words[0]): \(result.status)")
    } catch is CancellationError {
      print("\(words[0]): cancelled")
    } catch {
      print("\(words[0]): \(error)")
    }
    fflush(nil)
  }
}

/// Writes two bursts of ten files, and returns whether the action was called once for each.
@MainActor func demo() throws -> Bool {
  var template = Array("/tmp/run-on-change-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { return false }
  let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  let paths = (0..<20).map { "\(directory)/\($0)" }
  defer {
    for path in paths { unlink(path) }
    rmdir(directory)
  }
  var count = 0
  try watch(directory) {
    count += 1
    RunLoop.main.stop()
  }
  for burst in [paths[..<10], paths[10...]] {
    for path in burst { close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)) }
    // Ends with the call.
    RunLoop.main.run(mode: .default, for: .seconds(10))
  }
  // A call too many would follow within the delay.
  RunLoop.main.run(mode: .default, for: .milliseconds(500))
  print("two bursts of ten changes, \(count) calls")
  return count == 2
}

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments == ["--demo"] { exit(try demo() ? 0 : 1) }
guard arguments.count >= 2 else {
  print("usage: run-on-change DIRECTORY COMMAND… | --demo")
  exit(2)
}
let command = Command(Array(arguments.dropFirst()))
try watch(arguments[0]) { command.restart() }
for signal in [SIGINT, SIGTERM, SIGHUP] {
  try RunLoop.main.add(SignalSource(signal: signal) { _, _ in RunLoop.main.stop() }, forMode: .common)
}
RunLoop.main.runUntilStopped()
Task {
  await command.stop()
  RunLoop.main.stop()
}
RunLoop.main.runUntilStopped()
