// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents

/// Keeps programs running: starts each again when it has ended, later each time it ends soon, until it is told to stop.
///
/// All of it runs on one loop, in its default mode.
final class Supervisor: @unchecked Sendable {
  // Sendable: used by the loop's thread alone; the call-outs are made there, those of `terminate` too.

  /// What a supervisor says.
  enum Event: Equatable {
    case started(name: String)
    case ended(name: String, ChildProcessSource.ExitStatus)
    case lost(name: String, String)
    case waits(name: String, milliseconds: Int)
    case gaveUp(name: String)
    /// It has not ended when it was asked to.
    case killed(name: String)
    case stopping
  }

  /// A program to keep running.
  struct Program {
    let name: String
    let arguments: [String]
  }

  /// The back-off: the first wait, doubled with each end that comes soon, up to the longest.
  struct Policy {
    var first = 100
    var longest = 10_000
    /// A program that ran so long, in milliseconds, counts as healthy.
    var healthy = 5_000
    /// For how long, in milliseconds, a program may end in its own way before it is killed.
    var grace = 5_000
    /// How many times in turn a program may end soon; nil: without limit.
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

  /// The processes that run now.
  var processes: [pid_t] { children.compactMap(\.running?.process) }

  /// Ends all children, and the run of the loop when the last has ended.
  func stop() {
    guard !isStopping else { return }
    isStopping = true
    report(.stopping)
    for child in children {
      let name = child.program.name
      do {
        // Asked to end now, and killed when its time is over.
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
        // Nobody would hear of its end.
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

  /// Starts a program again after a while.
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

  /// Takes a child into a call-out.
  private struct Held: @unchecked Sendable {
    // Sendable: opened on the loop's thread alone.
    let value: Child

    init(_ value: Child) {
      self.value = value
    }
  }
}
