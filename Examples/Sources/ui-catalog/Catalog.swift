// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
package import RunLoopDisplay
import RunLoopTransactions

/// The application: its window, and the actions of timers and keys.
@MainActor
package final class Catalog {
  package let application: Application
  private let window: CatalogWindow
  private let isStill: Bool
  private var beats: Beats?
  private var storm: Storm?
  private var drawings: Drawings?

  /// Creates the application, which ``run()`` shows.
  ///
  /// - Parameters:
  ///   - device: The display to use.
  ///   - isStill: Whether there are no timers, so that nothing changes by itself.
  ///   - trace: The receiver of the application's events.
  package init(device: any DisplayDevice, isStill: Bool, trace: (any ApplicationTrace)?) {
    window = CatalogWindow()
    application = Application(device: device, window: window)
    self.isStill = isStill
    application.trace = trace
  }

  /// Prepares and runs the application.
  func run() throws(DisplayError) {
    prepare()
    try application.run()
  }

  /// Adds the catalog's own items to the main loop, which the application joins when it runs.
  package func prepare() {
    let (application, window) = (application, window)
    application.modeDidChange = { window.mode.text = "mode \($0.shortName)" }
    application.pipeline.add(
      .init(name: "commits", order: TurnOrder.beforeCommit) {
        MainActor.assumeIsolated { window.commits.text = "commits \(application.frameCount)" }
      })
    drawings = Drawings(application.trace as? EventLog) { drawings in
      window.completions.text = "completions \(drawings.completions) cancelled \(drawings.cancelled)"
    }
    window.whenFunctionKey = { [unowned self] in press(function: $0) }
    if !isStill { startTimers() }
  }

  private func startTimers() {
    let window = window
    var ticks = 0
    RunLoop.main.schedule(in: .milliseconds(100), repeating: .milliseconds(100)) { _ in
      MainActor.assumeIsolated {
        ticks += 1
        window.ticks.text = "ticks \(ticks)"
      }
    }
    beats = Beats { beats in
      window.beats.text = "beats \(beats.count) missed \(beats.missed)"
      window.worst.text = "worst \(beats.worst) ms"
    }
  }

  private func press(function number: Int) {
    switch number {
    case 1: window.toggleShowcase(moves: !isStill)
    case 2: fatalError("F2 was pressed")
    case 3:
      guard storm?.isOver ?? true else { return }
      let label = window.storm
      storm = Storm(.milliseconds(500), of: application) { label.show("storm \($0) commits") }
    case 4, 5:
      forgetWorst()
      window.askForLayout()
      drawings?.begin(isCancelled: number == 5)
    case 6: forgetWorst()
    default: break
    }
  }

  private func forgetWorst() {
    beats?.reset()
    window.worst.text = "worst 0 ms"
  }
}
