// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay

/// E3: gestures are recognized in the version 0 source, and their actions follow before the loop waits.
struct Gestures: Experiment {
  let id = "E3"
  let title = "Gestures"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    When _UIApplicationHandleEventQueue finds a gesture, it first breaks off the touches of the view, which gets touchesCancelled, and \
    marks the recogniser. An observer of beforeWaiting, _UIGestureRecognizerUpdateObserver, collects all that are marked and calls \
    their actions. It also deals with recognisers that were made, were removed, or have changed their state.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    Xilankong's dump of an application's main loop: order = 0, activities = 0x20, callout = _UIGestureRecognizerUpdateObserver.
    """
  let difference = Difference.addition("The recognisers are those of RunLoopDisplay, with the same observer.")
  let needsMainThread = true

  func run(on bench: Bench) -> Outcome {
    MainActor.assumeIsolated { observe(bench) }
  }

  @MainActor
  private func observe(_ bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "a tap", tap(bench),
      requires: """
        source1 source0 events:2 began(view) gesture:recognized cancelled(view) | beforeWaiting action:tap:recognized tap:none draw commit
        """)
    outcome.observe(
      "a pan, read by one read", pan(bench),
      requires: """
        source1 source0 events:3 began(view) gesture:began cancelled(view) gesture:ended | beforeWaiting action:pan:began action:pan:ended \
        draw commit
        """)
    outcome.observe(
      "a recogniser that is added when the touch begins: it follows the next touch", added(bench),
      requires: "first touch: none, second touch: action:late:recognized")
    outcome.observe(
      "a recogniser that is removed in the middle of its pan", removed(bench),
      requires: "action:pan:began, then action:pan:cancelled")
    outcome.observe(
      "observers of beforeWaiting alone, in the loop's description", observers(bench), requires: "order = 0")
    return outcome
  }

  /// Runs an application with a view that covers the terminal.
  @MainActor
  private func onView(_ bench: Bench, _ body: (ApplicationRig, GestureView) -> String) -> String {
    let window = Window()
    let view = GestureView(frame: Rect(x: 0, y: 0, width: 80, height: 24))
    view.name = "view"
    window.addSubview(view)
    return bench.onApplication(window) { body($0, view) }
  }

  @MainActor
  private func tap(_ bench: Bench) -> String {
    onView(bench) { stage, view in
      let tap = TapGestureRecognizer { _ in
        stage.write("tap")
        view.setNeedsDisplay()
      }
      tap.name = "tap"
      view.addGestureRecognizer(tap)
      return stage.steps { stage.terminal.type("\u{1b}[<0;4;3M\u{1b}[<0;4;3m") }
    }
  }

  @MainActor
  private func addPan(_ view: GestureView) -> PanGestureRecognizer {
    let pan = PanGestureRecognizer { _ in view.setNeedsDisplay() }
    pan.name = "pan"
    view.addGestureRecognizer(pan)
    return pan
  }

  @MainActor
  private func pan(_ bench: Bench) -> String {
    onView(bench) { stage, view in
      _ = addPan(view)
      return stage.steps { stage.terminal.type("\u{1b}[<0;4;3M\u{1b}[<32;5;3M\u{1b}[<32;9;3M\u{1b}[<0;9;3m") }
    }
  }

  @MainActor
  private func added(_ bench: Bench) -> String {
    onView(bench) { stage, view in
      let late = TapGestureRecognizer { _ in }
      late.name = "late"
      view.whenTouched = { view.addGestureRecognizer(late) }
      let touch = "\u{1b}[<0;4;3M\u{1b}[<0;4;3m"
      let first = actions(stage.steps { stage.terminal.type(touch) })
      view.whenTouched = nil
      return "first touch: \(first), second touch: \(actions(stage.steps { stage.terminal.type(touch) }))"
    }
  }

  @MainActor
  private func removed(_ bench: Bench) -> String {
    onView(bench) { stage, view in
      let pan = addPan(view)
      let began = actions(stage.steps { stage.terminal.type("\u{1b}[<0;4;3M\u{1b}[<32;9;3M") })
      let removed = actions(
        stage.steps {
          view.removeGestureRecognizer(pan)
          stage.rig.loop.wakeUp()
        })
      return "\(began), then \(removed)"
    }
  }

  /// Returns the actions among the steps.
  private func actions(_ steps: String) -> String {
    let actions = steps.split(separator: " ").filter { $0.hasPrefix("action") }
    return actions.isEmpty ? "none" : actions.joined(separator: " ")
  }

  @MainActor
  private func observers(_ bench: Bench) -> String {
    onView(bench) { stage, _ in
      let lines = stage.rig.loop.debugDescription.split(separator: "\n").filter { $0.contains("activities = 0x20,") }
      // Omits the address.
      for line in lines { stage.rig.note("observer \(line.drop { $0 != "{" })") }
      var orders: [String] = []
      for line in lines {
        let parts = line.split(separator: ", ").filter { $0.hasPrefix("order = ") }.map { $0.filter { $0 != "}" } }
        for order in parts where !orders.contains(order) { orders.append(order) }
      }
      return orders.joined(separator: ", ")
    }
  }
}

/// A view that can be touched.
@MainActor
private final class GestureView: View {
  var whenTouched: (() -> Void)?

  private var drawings = 0

  override func draw(_ canvas: inout Canvas) {
    drawings += 1
    canvas.draw("view \(drawings)", at: .zero)
  }
  override func touchesBegan(_ touch: Touch) { whenTouched?() }
}
