// SPDX-License-Identifier: Apache-2.0

// Keeps programs running, one for each argument, which is a shell command.
//
//     swift run --package-path Examples supervisor 'python3 -m http.server' 'sleep 5'
//     swift run --package-path Examples supervisor --demo
//
// The demo is a short scenario that checks itself and exits with 0 or 1.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents

func supervise(_ commands: [String]) throws {
  let programs = commands.map { Supervisor.Program(name: $0, arguments: ["/bin/sh", "-c", "exec \($0)"]) }
  let supervisor = try Supervisor(programs, loop: .main, policy: Supervisor.Policy()) {
    print($0)
    fflush(nil)
  }
  withExtendedLifetime(supervisor) { _ = RunLoop.main.runUntilStopped() }
}

/// Runs a program that always fails, one that is killed once and later asked to stop, and one that ignores that
/// request.
func demo() throws -> Bool {
  var template = Array("/tmp/supervisor-XXXXXX".utf8CString)
  guard let made = mkdtemp(&template) else { return false }
  let directory = String(cString: made)
  let ready = directory + "/ready"
  defer {
    unlink(ready)
    rmdir(directory)
  }
  let programs = [
    Supervisor.Program(name: "fails", arguments: ["/bin/sh", "-c", "exit 3"]),
    Supervisor.Program(name: "sleeps", arguments: ["/bin/sleep", "1000"]),
    // An ignored signal stays ignored in the program that replaces the shell.
    Supervisor.Program(
      name: "stays", arguments: ["/bin/sh", "-c", "trap '' TERM; : > \(ready); exec /bin/sleep 1000"]),
  ]
  var events: [Supervisor.Event] = []
  let policy = Supervisor.Policy(first: 20, longest: 50, healthy: 60_000, grace: 200, attempts: 4)
  let supervisor = try Supervisor(programs, loop: .main, policy: policy) {
    print($0)
    events.append($0)
    // Timers do not end a run, so the events are checked after this stop.
    RunLoop.main.stop()
  }
  func runUntil(_ isDone: () -> Bool) -> Bool {
    while !isDone() {
      guard RunLoop.main.run(mode: .default, for: .seconds(30), returnAfterSourceHandled: true) != .timedOut else {
        print("nothing happened for half a minute")
        return false
      }
    }
    return true
  }

  guard runUntil({ events.contains(.gaveUp(name: "fails")) }), let sleeper = supervisor.processes.first else {
    return false
  }
  while access(ready, F_OK) != 0 { _ = RunLoop.main.run(mode: .default, for: .milliseconds(10)) }
  kill(sleeper, SIGKILL)
  guard runUntil({ events.count { $0 == .started(name: "sleeps") } == 2 }) else { return false }
  // Like `kill` from a shell.
  kill(getpid(), SIGTERM)
  let staying = Supervisor.Event.ended(name: "stays", .signalled(signal: SIGKILL, coreDumped: false))
  guard runUntil({ events.contains(staying) }) else { return false }
  let failing = events.filter { "\($0)".contains("\"fails\"") }
  let sleeping = events.filter { "\($0)".contains("\"sleeps\"") }
  let fails = Supervisor.Event.ended(name: "fails", .exited(code: 3))
  let start = Supervisor.Event.started(name: "fails")
  let isRight =
    failing == [
      start, fails, .waits(name: "fails", milliseconds: 20), start, fails, .waits(name: "fails", milliseconds: 40),
      start,
      fails, .waits(name: "fails", milliseconds: 50), start, fails, .gaveUp(name: "fails"),
    ]
    && sleeping == [
      .started(name: "sleeps"), .ended(name: "sleeps", .signalled(signal: SIGKILL, coreDumped: false)),
      .waits(name: "sleeps", milliseconds: 20), .started(name: "sleeps"),
      .ended(name: "sleeps", .signalled(signal: SIGTERM, coreDumped: false)),
    ]
    && events.filter { "\($0)".contains("\"stays\"") } == [.started(name: "stays"), .killed(name: "stays"), staying]
    && supervisor.processes.isEmpty
  print(isRight ? "as it should be" : "not as it should be")
  return isRight
}

let arguments = Array(CommandLine.arguments.dropFirst())
do {
  if arguments == ["--demo"] { exit(try demo() ? 0 : 1) }
  guard !arguments.isEmpty else {
    print("usage: supervisor COMMAND… | --demo")
    exit(2)
  }
  try supervise(arguments)
} catch {
  print("supervisor: \(error)")
  exit(1)
}
