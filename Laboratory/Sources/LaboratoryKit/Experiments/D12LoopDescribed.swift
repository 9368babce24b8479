// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import Synchronization

/// D12: the description of a loop.
struct LoopDescribed: Experiment {
  let id = "D12"
  let title = "The description of a loop"
  let articles: [Article] = [.xilankong]
  let claim = """
    Printed in a call-out of an observer, the loop shows its wake-up port, whether it is stopped, its current mode, its common \
    modes, the common items, and for each mode its sources0, sources1, observers and timers.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    The description that the article prints.
    """
  let difference = Difference.addition(
    """
    No port wakes the loop: in its place stands how the thread sleeps, and "none" while it is awake, as it is in \
    every call-out.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      let loop = rig.loop
      let printed = Printer(loop)
      addItems(rig, printed)
      let observer = rig.observe(.beforeWaiting, order: 1) { _, _ in
        rig.note("the loop in a call-out of an observer:")
        for line in printed.describe().lines { rig.log.write(line) }
      }
      printed.name(observer, "printer")
      rig.time.at(.seconds(1)) { printed.describe() }
      rig.time.at(.seconds(2)) {
        loop.stop()
        printed.describe()
      }
      loop.run(mode: .default, for: .seconds(3))
      printed.describe()

      let all = printed.descriptions
      let described = all[0]
      var outcome = Outcome()
      outcome.observe(
        "the wake-up port, stopped, and the current mode, in an observer's call-out; while the loop sleeps; once it is "
          + "stopped; and after the run",
        all.map(\.state).joined(separator: ", "),
        requires: """
          none false kCFRunLoopDefaultMode, virtual false kCFRunLoopDefaultMode, none true kCFRunLoopDefaultMode, \
          none false (none)
          """)
      outcome.observe(
        "in the call-out, the common modes", described.set("common modes"),
        requires: "2 (kCFRunLoopDefaultMode, UITrackingRunLoopMode)")
      outcome.observe(
        "the common items, of which all were added", described.set("common mode items"),
        requires: "3 (touches, commit, blink)")
      outcome.observe(
        "the default mode: the common items, a source0, a descriptor, a port, two observers and a timer",
        described.items(of: .default),
        requires: """
          sources0 2 (touches, manual), sources1 2 (pipe, port), observers 3 (pool, printer, commit), \
          timers 2 (blink, tick)
          """)
      outcome.observe(
        "the tracking mode, to which nothing was added but the common items", described.items(of: .tracking),
        requires: "sources0 1 (touches), sources1 (null), observers 1 (commit), timers 1 (blink)")
      outcome.observe(
        "a mode with a source0 and an observer of the default mode", described.items(of: .eventReceive),
        requires: "sources0 1 (manual), sources1 (null), observers 1 (pool), timers (null)")
      return outcome
    }
  }

  /// Fills the loop with items similar to those that Xilankong printed.
  private func addItems(_ rig: Rig, _ printer: Printer) {
    let loop = rig.loop
    try? loop.addCommonMode(.tracking)

    let touches = RunLoop.Source(order: -1) {}
    let commit = RunLoop.Observer(activities: [.beforeWaiting, .exit], order: 2_000_000) { _, _ in }
    let blink = Timer(timeInterval: 60, repeats: true) { _ in }
    loop.add(touches, forMode: .common)
    loop.add(commit, forMode: .common)
    loop.add(blink, forMode: .common)

    let manual = RunLoop.Source {}
    let pool = RunLoop.Observer(activities: .entry, order: -2_147_483_647) { _, _ in }
    for mode in [RunLoop.Mode.default, .eventReceive] {
      loop.add(manual, forMode: mode)
      loop.add(pool, forMode: mode)
    }
    let pipe = Pipe()
    let descriptor = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in pipe.read() }
    try? loop.add(descriptor, forMode: .default)
    let port = Port { _, _ in }
    loop.add(port, forMode: .default)
    let tick = Timer(timeInterval: 90, repeats: true) { _ in }
    loop.add(tick, forMode: .default)

    printer.name(touches, "touches")
    printer.name(commit, "commit")
    printer.name(blink, "blink")
    printer.name(manual, "manual")
    printer.name(pool, "pool")
    printer.name(descriptor, "pipe")
    printer.name(port, "port")
    printer.name(tick, "tick")
  }
}

/// Records descriptions of a loop, and retains its named items so that no address is used twice.
private final class Printer: Sendable {
  private struct State {
    var names: [(object: any AnyObject & Sendable, name: String)]
    var descriptions: [LoopDescription] = []
  }

  private let loop: RunLoop
  private let state: Mutex<State>

  init(_ loop: RunLoop) {
    self.loop = loop
    state = Mutex(State(names: [(loop, "loop")]))
  }

  func name(_ object: any AnyObject & Sendable, _ name: String) {
    state.withLock { $0.names.append((object, name)) }
  }

  /// The descriptions so far, in order.
  var descriptions: [LoopDescription] { state.withLock { $0.descriptions } }

  @discardableResult
  func describe() -> LoopDescription {
    let names = state.withLock { $0.names }
    let description = LoopDescription(of: loop, names: names.map { ($0.object, $0.name) })
    state.withLock { $0.descriptions.append(description) }
    return description
  }
}
