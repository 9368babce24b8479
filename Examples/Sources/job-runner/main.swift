// SPDX-License-Identifier: Apache-2.0

// Runs each argument as a shell command: at most eight at once, each for at most thirty seconds. SIGINT, SIGTERM and
// SIGHUP terminate running commands with their process groups.
//
//     swift run --package-path Examples job-runner 'make test' 'make lint'
//     swift run --package-path Examples job-runner --demo
//
// The demo is a short scenario that checks itself and exits with 0 or 1.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads

struct JobRunner {
  var atOnce = 8
  var limit = Duration.seconds(30)

  /// Runs the commands, and reports how each ended and how much it wrote.
  func run(_ commands: [String]) async -> [String] {
    await withTaskGroup(of: (Int, String).self) { group in
      var waiting = commands.enumerated().makeIterator()
      func start() {
        guard let (number, command) = waiting.next() else { return }
        group.addTask { (number, await outcome(of: command)) }
      }
      for _ in 0..<atOnce { start() }
      var outcomes = [String](repeating: "", count: commands.count)
      while let (number, outcome) = await group.next() {
        outcomes[number] = outcome
        start()
      }
      return outcomes
    }
  }

  private func outcome(of command: String) async -> String {
    var options = SpawnedProcess.Options()
    options.standardError = .standardOutput
    options.leadsProcessGroup = true
    do {
      let job = try await SpawnedProcess.run(
        "sh", ["-c", command], deadline: limit, grace: .milliseconds(500), options: options)
      return "\(job.status), \(job.output.count) bytes"
    } catch is CancellationError {
      return "cancelled"
    } catch {
      return "\(error)"
    }
  }
}

/// Runs the commands, and terminates them when the process is asked to end.
func run(_ commands: [String], by runner: JobRunner) async throws -> [String] {
  let work = Task { await runner.run(commands) }
  let thread = try ResidentThread(name: "signals")
  defer { thread.stop() }
  for signal in [SIGINT, SIGTERM, SIGHUP] {
    let events = try SignalSource.events(of: signal, on: thread.runLoop)
    Task { for await _ in events { work.cancel() } }
  }
  return await work.value
}

guard CommandLine.arguments.dropFirst().first == "--demo" else {
  let commands = Array(CommandLine.arguments.dropFirst())
  for (command, outcome) in zip(commands, try await run(commands, by: JobRunner())) { print("\(command): \(outcome)") }
  exit(0)
}

// Forty commands that write more than a pipe holds, one that never ends, one whose background child keeps its output
// open, one that ignores SIGTERM, and one that fails.
let commands =
  (0..<40).map { "head -c 100000 /dev/zero; echo done \($0) >&2" } + [
    "exec sleep 100", "sleep 100 & echo started; wait", "trap '' TERM; exec sleep 100", "exit 3",
  ]
let outcomes = try await run(commands, by: JobRunner(limit: .milliseconds(1500)))
let counts = Dictionary(grouping: outcomes, by: { $0 }).mapValues(\.count)
for (outcome, count) in counts.sorted(by: { $0.key < $1.key }) { print(count, outcome) }
let late = outcomes[40..<43].count { $0.hasPrefix("the program did not end in time") }
let isRight = outcomes[..<40].allSatisfy { $0.contains(", 10000") } && late == 3 && outcomes[43].contains("3")
exit(isRight ? 0 : 1)
