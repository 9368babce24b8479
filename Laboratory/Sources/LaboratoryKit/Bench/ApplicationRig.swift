// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopTesting
import RunLoopThreads

/// An instrumented application on a pseudo-terminal, whose main loop uses virtual time.
@MainActor
final class ApplicationRig: ApplicationTrace {
  let rig: Rig
  let terminal: PseudoTerminal
  let application: Application
  let window: Window
  /// The loop's source call-outs and the steps of the application, in order.
  let steps: StepLog
  /// Whether the loop's activities are logged as steps.
  var writesStages = true
  /// A source that an experiment signals repeatedly.
  var storm: RunLoop.Source?

  fileprivate init(_ rig: Rig, _ window: Window) {
    self.rig = rig
    self.window = window
    steps = StepLog(rig.time.log)
    terminal = PseudoTerminal(width: 80, height: 24)
    application = Application(
      device: Terminal(input: terminal.application, output: terminal.application, name: "xterm-256color"),
      window: window)
    application.trace = self
  }

  func applicationDid(_ step: ApplicationStep) {
    guard let word = word(of: step) else { return }
    rig.note(word)
    steps.write(word)
  }

  private func word(of step: ApplicationStep) -> String? {
    switch step {
    case .stage(let activity, _): writesStages && activity == .beforeWaiting ? "| beforeWaiting" : nil
    case .source1: nil
    case .source0(let events): "events:\(events)"
    case .touches(let phase, let view): "\(phase)(\(view))"
    case .gesture(let state): "gesture:\(state)"
    case .action(let name, let state): "action:\(name):\(state)"
    case .resize(let size): "resize:\(size.width)x\(size.height)"
    case .layout: "layout"
    case .draw: "draw"
    case .commit(let bytes): bytes > 0 ? "commit" : "commit:0"
    }
  }

  /// Logs a step of the experiment itself, with the kind of call-out in which it is made.
  func write(_ step: String) {
    let word = "\(step):\(currentCallOut())"
    rig.note(word)
    steps.write(word)
  }

  /// Triggers an event while the loop sleeps, runs the loop until it has been handled, and returns the steps.
  ///
  /// - Parameter mode: The mode that the loop runs in.
  func steps(mode: RunLoop.Mode = .default, after event: @escaping @MainActor @Sendable () -> Void) -> String {
    rig.loop.run(mode: mode, for: .milliseconds(100))
    terminal.read()
    rig.time.at(rig.time.elapsed + .milliseconds(10)) { [steps] in
      _ = steps.take()
      MainActor.assumeIsolated { event() }
    }
    rig.loop.run(mode: mode, for: .milliseconds(100))
    terminal.read()
    return steps.take()
  }
}

/// The steps of an application among the source call-outs, in the log of its loop's virtual time.
struct StepLog: Sendable {
  private let log: VirtualTimeLog

  fileprivate init(_ log: VirtualTimeLog) { self.log = log }

  func write(_ step: String) { log.write(step) }

  /// The words of the steps, in order, without other call-outs.
  var lines: [String] {
    log.callOuts.split(separator: " ").compactMap { word in
      switch word {
      case "S0": "source0"
      case "S1": "source1"
      case "B", "T", "M": nil
      default: String(word)
      }
    }
  }

  /// Returns the steps so far, or `none`, and clears the log.
  func take() -> String {
    let lines = lines
    log.clear()
    return lines.isEmpty ? "none" : lines.joined(separator: " ")
  }
}

extension Bench {
  /// Runs `body` with an application on a terminal, whose loop is the main loop during the call.
  ///
  /// The application's loop, which it runs itself, calls the body. Must be called on the main thread.
  @MainActor
  func onApplication(_ window: Window = Window(), _ body: (ApplicationRig) -> String) -> String {
    onMainStandIn { rig in
      let stage = ApplicationRig(rig, window)
      return stage.application.run(on: rig.loop) { body(stage) }
    }
  }

  /// Runs `body` with a loop on virtual time that is the main loop during the call; must be called on the main thread.
  @MainActor
  func onMainStandIn<Result>(_ body: (Rig) -> Result) -> Result {
    log.write("An application on a new terminal:")
    return onVirtualTime(body)
  }
}

extension Application {
  /// Runs the application on a new loop, with `body` in its first call-out, and returns that result or the reason why
  /// there is no application.
  func run(on loop: RunLoop, _ body: () -> String) -> String {
    withoutActuallyEscaping(body) { body in
      // Used on the main thread only.
      nonisolated(unsafe) var result = ""
      nonisolated(unsafe) let body = body
      loop.perform {
        result = body()
        MainActor.assumeIsolated { self.terminate() }
      }
      do {
        try run()
      } catch {
        return "\(error)"
      }
      return result
    }
  }
}
