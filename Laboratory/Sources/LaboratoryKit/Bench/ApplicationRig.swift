// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopThreads

/// An application on a pseudo-terminal, whose main loop is on virtual time, with the instruments around it.
@MainActor
final class ApplicationRig: ApplicationTrace {
  let rig: Rig
  let terminal: PseudoTerminal
  let application: Application
  let window: Window
  /// The loop's call-outs of sources, and the steps of the application, in order.
  let steps = Record()
  /// Whether the stages of the loop are among the steps.
  var writesStages = true
  /// A source that an experiment signals repeatedly.
  var storm: RunLoop.Source?

  fileprivate init(_ rig: Rig, _ window: Window) {
    self.rig = rig
    self.window = window
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

  /// Writes a step of the experiment's own, with the kind of call-out in which it is made.
  func write(_ step: String) {
    let word = "\(step):\(rig.trace.callOut)"
    rig.note(word)
    steps.write(word)
  }

  /// Lets something happen while the loop sleeps, and runs the loop until it has been dealt with; the steps that were
  /// made.
  ///
  /// - Parameter mode: The mode that the loop runs in.
  func steps(mode: RunLoop.Mode = .default, after event: @escaping @MainActor @Sendable () -> Void) -> String {
    rig.loop.run(mode: mode, for: .milliseconds(100))
    terminal.read()
    rig.time.at(.nanoseconds(rig.time.now.nanoseconds) + .milliseconds(10)) { [steps] in
      _ = steps.take()
      MainActor.assumeIsolated { event() }
    }
    rig.loop.run(mode: mode, for: .milliseconds(100))
    terminal.read()
    return steps.take()
  }
}

extension Bench {
  /// Runs `body` with an application on a terminal, whose loop is the main loop meanwhile.
  ///
  /// On the main thread.
  @MainActor
  func onApplication(_ window: Window = Window(), _ body: (ApplicationRig) -> String) -> String {
    onMainStandIn { rig in
      let stage = ApplicationRig(rig, window)
      rig.loop.setTraceHook { [steps = stage.steps] event in
        rig.follow(event)
        switch event.kind {
        case .callOut(let kind) where kind == .source0 || kind == .source1: steps.write(kind.rawValue)
        default: break
        }
      }
      do {
        try stage.application.start()
      } catch {
        return "\(error)"
      }
      defer { stage.application.finish() }
      return body(stage)
    }
  }

  /// Runs `body` with a loop on virtual time that is the main loop meanwhile.
  ///
  /// On the main thread.
  @MainActor
  func onMainStandIn<Result>(_ body: (Rig) -> Result) -> Result {
    let time = SteppedTime()
    let loop = time.makeStandIn()
    return Thread.withStandIn(loop, asMain: true) {
      log.write("An application on a new terminal:")
      let rig = Rig(time: time, loop: loop, trace: Trace(), log: log)
      loop.setTraceHook { rig.follow($0) }
      defer { loop.setTraceHook(nil) }
      return body(rig)
    }
  }
}

extension Rig {
  /// Notes what the loop did, and ends a run that stands still.
  fileprivate func follow(_ event: RunLoop.TraceEvent) {
    if trace.write(event) == .standsStill { time.advance(by: Rig.longerThanAnyRun) }
  }
}
