// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopDisplay

/// E2: the path of an event from the hardware to the view that handles it.
struct EventPath: Experiment {
  let id = "E2"
  let title = "The way of an event to its responder"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    A source 1 receives what the hardware reports; its call-out hands it to _UIApplicationHandleEventQueue, a source 0, which makes \
    events of it, finds gestures, handles rotations of the screen, and sends the rest to the window. Clicks of buttons and the \
    touchesBegan, Moved, Ended and Cancelled are called within that call-out.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    Xilankong's dump of an application's main loop: a source 1 with the call-out __IOHIDEventSystemClientQueueCallback, and a \
    source 0 of the order -1 with _UIApplicationHandleEventQueue, both among the common items.
    """
  let difference = Difference.addition(
    """
    The hardware is a terminal: the kernel reports its keys, its mouse and its size through a descriptor, which is the source 1, and \
    the source 0 is RunLoopDisplay's queue of events, of the same order, -1. A rotation is a window that gets another size.
    """)
  let needsMainThread = true

  func run(on bench: Bench) -> Outcome {
    MainActor.assumeIsolated { observe(bench) }
  }

  @MainActor
  private func observe(_ bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "a key, up the chain of responders that do not handle it", key(bench),
      requires: "source1 source0 events:1 field:source0 panel:source0 window:source0 | beforeWaiting draw commit")
    outcome.observe(
      "a click, found by its place", click(bench),
      requires:
        "source1 source0 events:2 began(field) began:source0 ended(field) ended:source0 | beforeWaiting draw commit")
    outcome.observe(
      "a click where the view above is hidden, and one outside of every view", misses(bench),
      requires: "began(panel) ended(panel) began(window) ended(window)")
    outcome.observe(
      "another size of the terminal, which a signal reports", resize(bench),
      requires: "source1 source0 events:1 resize:100x30 | beforeWaiting layout commit")
    outcome.observe(
      "passes of the loop from the read to the frame", passes(bench), requires: "source1, pass, source0, pass, commit")
    outcome.observe(
      "input in the mode for receiving events, and then in the default mode", eventReceive(bench),
      requires: "source1 source0 events:1 field:source0 panel:source0 window:source0, then | beforeWaiting draw commit")
    return outcome
  }

  /// Creates a window with a panel, which contains a focused field.
  @MainActor
  private func makeWindow() -> ProbeWindow {
    let window = ProbeWindow()
    window.panel.addSubview(window.field)
    window.addSubview(window.panel)
    window.field.becomeFirstResponder()
    return window
  }

  @MainActor
  private func onApplication(_ bench: Bench, _ body: (ApplicationRig, ProbeWindow) -> String) -> String {
    let window = makeWindow()
    return bench.onApplication(window) { stage in
      for probe in [window.field, window.panel] { probe.stage = stage }
      window.stage = stage
      return body(stage, window)
    }
  }

  @MainActor
  private func key(_ bench: Bench) -> String {
    onApplication(bench) { stage, _ in stage.steps { stage.terminal.type("x") } }
  }

  @MainActor
  private func click(_ bench: Bench) -> String {
    onApplication(bench) { stage, _ in
      stage.steps { stage.terminal.type("\u{1b}[<0;4;3M\u{1b}[<0;4;3m") }
    }
  }

  @MainActor
  private func misses(_ bench: Bench) -> String {
    onApplication(bench) { stage, window in
      window.field.isHidden = true
      let steps = stage.steps { stage.terminal.type("\u{1b}[<0;4;3M\u{1b}[<0;4;3m\u{1b}[<0;60;20M\u{1b}[<0;60;20m") }
      return steps.split(separator: " ").filter { $0.contains("(") }.joined(separator: " ")
    }
  }

  @MainActor
  private func resize(_ bench: Bench) -> String {
    onApplication(bench) { stage, _ in
      stage.steps {
        stage.terminal.resize(width: 100, height: 30)
        // The kernel sends the signal to the terminal's process group, which does not include this process.
        raise(SIGWINCH)
      }
    }
  }

  @MainActor
  private func passes(_ bench: Bench) -> String {
    onApplication(bench) { stage, _ in
      stage.rig.observe(.beforeTimers) { _, _ in stage.steps.write("pass") }
      let steps = stage.steps { stage.terminal.type("x") }.split(separator: " ")
      guard let read = steps.firstIndex(of: "source1"), let frame = steps.lastIndex(of: "commit") else { return "none" }
      return steps[read...frame].filter { ["pass", "source0", "source1", "commit"].contains($0) }.joined(
        separator: ", ")
    }
  }

  @MainActor
  private func eventReceive(_ bench: Bench) -> String {
    onApplication(bench) { stage, _ in
      stage.rig.loop.run(mode: .default, for: .milliseconds(100))
      stage.terminal.read()
      let input = stage.steps(mode: .eventReceive) { stage.terminal.type("x") }
      stage.rig.loop.run(mode: .default, for: .milliseconds(100))
      return "\(input), then \(stage.steps.take())"
    }
  }
}

/// A window whose responders record each call and its kind of call-out.
@MainActor
final class ProbeWindow: Window {
  let panel = Probe("panel", Rect(x: 0, y: 0, width: 20, height: 10))
  let field = Probe("field", Rect(x: 2, y: 1, width: 10, height: 3))
  weak var stage: ApplicationRig?

  init() {
    super.init()
    name = "window"
  }

  override func keyPressed(_ key: KeyEvent) {
    stage?.write("window")
    super.keyPressed(key)
  }
}

/// A view that records each call and its kind of call-out.
@MainActor
final class Probe: View {
  weak var stage: ApplicationRig?

  init(_ name: String, _ frame: Rect) {
    super.init(frame: frame)
    self.name = name
  }

  override var canBecomeFirstResponder: Bool { true }

  private var drawings = 0

  override func draw(_ canvas: inout Canvas) {
    drawings += 1
    canvas.draw("\(name ?? "") \(drawings)", at: .zero)
  }

  override func keyPressed(_ key: KeyEvent) {
    stage?.write(name ?? "")
    setNeedsDisplay()
    super.keyPressed(key)
  }

  override func touchesBegan(_ touch: Touch) {
    stage?.write("began")
    setNeedsDisplay()
  }

  override func touchesEnded(_ touch: Touch) { stage?.write("ended") }
}
