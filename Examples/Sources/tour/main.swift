// SPDX-License-Identifier: Apache-2.0

// Ten things that a run loop does, each with a line of explanation and what it printed. It needs no terminal and no
// network beyond the loopback interface. SQLite and libcurl are used if they are installed.
//
//     swift run --package-path Examples tour
//
// On a terminal it pauses between the steps. It exits with 0, or with 1 and the name of the step that failed.

import Glibc
import RunLoopCore
import RunLoopThreads

struct Step {
  let name: String
  let explanation: String
  let run: @MainActor () async throws -> String
}

/// A step's output was not the expected one.
struct Unexpected: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

let steps = [
  Step(name: "timer", explanation: "A timer of the main thread's loop, every 100 ms, as a sequence.", run: timer),
  Step(name: "thread", explanation: "A thread that stays, takes work from anywhere, and ends cleanly.", run: thread),
  Step(name: "actor", explanation: "An actor that lives on such a thread, with a C library's handle.", run: database),
  Step(name: "socket", explanation: "An echo server and its client, both on one thread.", run: echo),
  Step(name: "child process", explanation: "A program that is run, with its output and its end.", run: program),
  Step(name: "file change", explanation: "A directory that is watched while a file is written in it.", run: files),
  Step(name: "HTTP", explanation: "A request to a server in this process.", run: request),
  Step(name: "virtual time", explanation: "A test that waits for a day, and takes no time.", run: tomorrow),
  Step(name: "hang", explanation: "A call-out that blocks its loop, found by a watch in this process.", run: hang),
  Step(name: "why alive", explanation: "What keeps a loop from ending.", run: whyAlive),
]

MainLoop.run {
  let pause: Duration = isatty(STDOUT_FILENO) == 1 ? .milliseconds(1200) : .zero
  for (index, step) in steps.enumerated() {
    if index > 0 { try await RunLoop.main.sleep(for: pause) }
    print("\(index + 1). \(step.name): \(step.explanation)")
    fflush(nil)
    do {
      let output = try await RunLoop.main.withTimeout(.seconds(30)) { try await step.run() }
      for line in output.split(separator: "\n") { print("     \(line)") }
      fflush(nil)
    } catch {
      throw Unexpected("tour: step \(index + 1), \(step.name), failed: \(error)")
    }
  }
  print("That was the tour. Each step is a function in Examples/Sources/tour.")
}
