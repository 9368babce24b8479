// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopTesting
import RunLoopTransactions

/// E4: the changes of a turn are laid out, drawn and shown once, before the loop waits.
struct InterfaceCommit: Experiment {
  let id = "E4"
  let title = "The commit of the interface"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    Changes of frames and layers, and setNeedsLayout and setNeedsDisplay, only mark views. An observer of beforeWaiting and exit, of \
    the order 2000000, goes through all that are marked, lays them out and draws them: CA::Transaction::commit, layout_if_needed, \
    layoutSubviews, display_if_needed, drawRect. At the order 1999000 stands _afterCACommitHandler.
    """
  let verdict = Verdict.corrected(
    """
    What comes after the commit stands at 2001000, behind it, and at 1999000 its counterpart that comes before the commit. The \
    listing has the former's name at the latter's order.
    """)
  let evidence = """
    The dump that Xilankong prints from a running application has three observers with activities = 0xa0 in this place: 1999000 \
    (0x198698c20), 2000000 (0x19557de00), 2001000 (0x1983eb208). The first and the last have one context, 0x100201710, and the last \
    one's code lies 8 bytes behind the gestures' observer, 0x1983eb200; an observer of the order 1999000 comes before 2000000.
    """
  let difference = Difference.addition(
    """
    The frame is written to a terminal, in one write. A loop that never comes to its wait commits by a timer, after a sixtieth of a \
    second; Core Animation, like any observer of beforeWaiting, would not.
    """)
  let needsMainThread = true

  func run(on bench: Bench) -> Outcome {
    MainActor.assumeIsolated { observe(bench) }
  }

  @MainActor
  private func observe(_ bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "a hundred changes of three views in a turn", changes(bench),
      requires: "| beforeWaiting layout draw commit; layouts 3, drawings 3")
    outcome.observe(
      "stages and observers around the commit, by their orders", orders(bench),
      requires: "1999000 layout draw 2000000 2001000")
    outcome.observe(
      "the stack within layoutSubviews", stack(bench, of: "layoutSubviews"),
      requires: "runLoopIsCallingOutToAnObserver > commitFrame > layoutSubviews")
    outcome.observe(
      "the stack within draw", stack(bench, of: "draw"),
      requires: "runLoopIsCallingOutToAnObserver > commitFrame > draw")
    outcome.observe("a run that ends without a wait", exit(bench), requires: "source0 layout draw commit")
    outcome.observe("a turn that changes nothing", nothing(bench), requires: "| beforeWaiting")
    outcome.observe(
      "a view that is drawn as it was before", same(bench), requires: "| beforeWaiting draw commit:0")
    outcome.observe(
      "a source that signals itself in each of its call-outs, for half a second", storm(bench),
      requires: "20 to 31 commits")
    return outcome
  }

  @MainActor
  private func onViews(_ bench: Bench, _ body: (ApplicationRig, [CommitProbe]) -> String) -> String {
    let window = Window()
    let views = (0..<3).map { CommitProbe(frame: Rect(x: 0, y: 2 * $0, width: 30, height: 1)) }
    for view in views { window.addSubview(view) }
    return bench.onApplication(window) { body($0, views) }
  }

  @MainActor
  private func changes(_ bench: Bench) -> String {
    onViews(bench) { stage, views in
      let counts = { (views.reduce(0) { $0 + $1.layouts }, views.reduce(0) { $0 + $1.drawings }) }
      stage.rig.loop.run(mode: .default, for: .milliseconds(100))
      let before = counts()
      let steps = stage.steps {
        for number in 1...100 {
          for view in views { view.show("\(number)") }
        }
      }
      return "\(steps); layouts \(counts().0 - before.0), drawings \(counts().1 - before.1)"
    }
  }

  @MainActor
  private func orders(_ bench: Bench) -> String {
    onViews(bench) { stage, views in
      stage.writesStages = false
      for order in [2_001_000, 1_999_000, 2_000_000] {
        stage.application.pipeline.add(.init(name: "\(order)", order: order) { stage.steps.write("\(order)") })
      }
      let steps = stage.steps { views[0].show("changed") }
      return steps.split(separator: " ").filter { $0 != "commit" }.joined(separator: " ")
    }
  }

  /// Returns the functions in the loop's part of a stack that do not depend on inlining.
  @MainActor
  private func stack(_ bench: Bench, of function: String) -> String {
    onViews(bench) { stage, views in
      var found: [String] = []
      views[0].whenCalled = { name in
        guard name == function else { return }
        let functions = LaboratoryKit.stack()
        found = functions
      }
      _ = stage.steps { views[0].show("changed") }
      views[0].whenCalled = nil
      stage.rig.note(
        "CA::Transaction::observer_callback > CA::Transaction::commit > … in Ren's article; here, from within:")
      for line in loopPart(of: found) { stage.rig.note("  \(line)") }
      let known = ["runLoopIsCallingOutToAnObserver", "commitFrame", function]
      let names = known.filter { name in found.contains { $0.contains(name + "(") } }
      return names.joined(separator: " > ")
    }
  }

  @MainActor
  private func exit(_ bench: Bench) -> String {
    onViews(bench) { stage, views in
      stage.rig.loop.run(mode: .default, for: .milliseconds(100))
      stage.terminal.read()
      _ = stage.steps.take()
      let source = RunLoop.Source {
        MainActor.assumeIsolated {
          views[0].show("changed")
          stage.rig.loop.stop()
        }
      }
      stage.rig.loop.add(source, forMode: .default)
      source.signal()
      stage.rig.loop.run(mode: .default, for: .milliseconds(100))
      return stage.steps.take()
    }
  }

  @MainActor
  private func nothing(_ bench: Bench) -> String {
    onViews(bench) { stage, _ in stage.steps { stage.rig.loop.wakeUp() } }
  }

  @MainActor
  private func same(_ bench: Bench) -> String {
    onViews(bench) { stage, views in stage.steps { views[0].setNeedsDisplay() } }
  }

  @MainActor
  private func storm(_ bench: Bench) -> String {
    onViews(bench) { stage, views in
      stage.rig.loop.run(mode: .default, for: .milliseconds(100))
      _ = stage.steps.take()
      let passes = Record()
      let source = RunLoop.Source(order: 1) { [unowned stage] in
        MainActor.assumeIsolated {
          passes.write("pass")
          views[0].show("\(passes.count)")
          stage.rig.time.spend(.milliseconds(1))
          stage.terminal.read()
          stage.storm?.signal()
        }
      }
      stage.storm = source
      stage.rig.loop.add(source, forMode: .default)
      source.signal()
      stage.rig.loop.run(mode: .default, for: .milliseconds(500))
      source.invalidate()
      stage.storm = nil
      let commits = stage.steps.lines.filter { $0 == "commit" }.count
      stage.rig.note("\(passes.count) call-outs, \(commits) commits")
      return (20...31).contains(commits) ? "20 to 31 commits" : "\(commits) commits"
    }
  }
}

/// A view that records its layout and drawing.
@MainActor
private final class CommitProbe: View {
  private(set) var layouts = 0
  private(set) var drawings = 0
  var whenCalled: ((String) -> Void)?
  private var text = ""

  func show(_ text: String) {
    self.text = text
    setNeedsLayout()
    setNeedsDisplay()
  }

  override func layoutSubviews() {
    layouts += 1
    whenCalled?("layoutSubviews")
  }

  override func draw(_ canvas: inout Canvas) {
    drawings += 1
    whenCalled?("draw")
    canvas.draw(text, at: .zero)
  }
}
