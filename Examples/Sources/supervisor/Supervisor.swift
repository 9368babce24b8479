// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents

/// Keeps programs running: restarts each when it ends, with a growing delay if it ends soon, until it is stopped.
///
/// Everything runs on one loop, in its default mode.
final class Supervisor: @unchecked Sendable {
  // Sendable: used only by the loop's thread, on which all call-outs are made, including those of `terminate`.

  /// An event that a supervisor reports.
  enum Event: Equatable {
    case started(name: String)
    case ended(name: String, ChildProcessSource.ExitStatus)
    case lost(name: String, String)
    case waits(name: String, milliseconds: Int)
    case gaveUp(name: String)
    /// The program did not end in time when it was asked to.
    case killed(name: String)
    case stopping
  }

  /// A program to keep running.
  struct Program {
    let name: String
    let arguments: [String]
  }

  /// The back-off: the first delay, doubled with each early end, up to the longest.
  struct Policy {
    var first = 100
    var longest = 10_000
    /// A program that ran for this many milliseconds counts as healthy.
    var healthy = 5_000
    /// The time in milliseconds that a program has to end by itself before it is killed.
    var grace = 5_000
    /// The maximum number of consecutive early ends; nil means no limit.
    var attempts: Int?
  }

  private final class Child {
    let program: Program
    var running: SpawnedProcess?
    var wait: Int
    var failures = 0
    var started = SuspendingClock().now

    init(_ program: Program, wait: Int) {
      self.program = program
      self.wait = wait
    }
  }

  private let loop: RunLoop
  private let policy: Policy
  private let report: (Event) -> Void
  private var children: [Child] = []
  private var signals: [SignalSource] = []
  private var isStopping = false

  init(_ programs: [Program], loop: RunLoop, policy: Policy, report: @escaping (Event) -> Void) throws {
    self.loop = loop
    self.policy = policy
    self.report = report
    for signal in [SIGTERM, SIGINT] {
      let source = try SignalSource(signal: signal) { [weak self] _, _ in self?.stop() }
      try loop.add(source, forMode: .default)
      signals.append(source)
    }
    children = programs.map { Child($0, wait: policy.first) }
    for child in children { start(child) }
  }

  /// The running processes.
  var processes: [pid_t] { children.compactMap(\.running?.process) }

  /// Ends all children, and stops the run of the loop after the last has ended.
  func stop() {
    guard !isStopping else { return }
    isStopping = true
    report(.stopping)
    for child in children {
      let name = child.program.name
      do {
        // Asks the child to end, and kills it at its deadline.
        try child.running?.terminate(within: .milliseconds(policy.grace), on: loop, inModes: [.default]) {
          [unowned self] _ in report(.killed(name: name))
        }
      } catch { report(.lost(name: name, "\(error)")) }
    }
    finishIfDone()
  }

  private func start(_ child: Child) {
    guard !isStopping else { return }
    child.started = SuspendingClock().now
    do {
      guard let program = child.program.arguments.first else { throw SpawnError.notFound(program: "") }
      let running = try SpawnedProcess(program, Array(child.program.arguments.dropFirst()))
      child.running = running
      report(.started(name: child.program.name))
      let source = ChildProcessSource(running) { [unowned self, child = Held(child)] _, end in
        ended(child.value, end)
      }
      do {
        try loop.add(source, forMode: .default)
      } catch {
        // The supervisor would not be notified of its end.
        try? running.send(signal: SIGKILL)
        var status: Int32 = 0
        waitpid(running.process, &status, 0)
        ended(child, .unknown(.reapedElsewhere(running.process)))
      }
    } catch {
      report(.lost(name: child.program.name, "\(error)"))
      again(child)
    }
  }

  private func ended(_ child: Child, _ end: ChildProcessSource.End) {
    child.running = nil
    switch end {
    case .ended(let status): report(.ended(name: child.program.name, status))
    case .unknown(let error): report(.lost(name: child.program.name, "\(error)"))
    }
    if isStopping { finishIfDone() } else { again(child) }
  }

  /// Restarts a program after a delay.
  private func again(_ child: Child) {
    if SuspendingClock().now - child.started >= .milliseconds(policy.healthy) {
      child.wait = policy.first
      child.failures = 0
    }
    child.failures += 1
    if let attempts = policy.attempts, child.failures >= attempts {
      report(.gaveUp(name: child.program.name))
      children.removeAll { $0 === child }
      return finishIfDone()
    }
    let wait = child.wait
    child.wait = min(2 * wait, policy.longest)
    report(.waits(name: child.program.name, milliseconds: wait))
    loop.schedule(in: .milliseconds(wait)) { [unowned self, child = Held(child)] _ in start(child.value) }
  }

  private func finishIfDone() {
    guard processes.isEmpty, isStopping || children.isEmpty else { return }
    for signal in signals { signal.invalidate() }
    loop.stop()
  }

  /// Passes a child into a call-out.
  private struct Held: @unchecked Sendable {
    // Sendable: unwrapped only on the loop's thread.
    let value: Child

    init(_ value: Child) {
      self.value = value
    }
  }
}
