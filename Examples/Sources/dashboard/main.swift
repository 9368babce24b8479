// SPDX-License-Identifier: Apache-2.0

// A dashboard of the machine's activity, measured on its own thread. Tab moves the focus; q and Ctrl-C quit.

import Glibc
import RunLoopCore
import RunLoopDisplay
import RunLoopThreads

@MainActor
final class Dashboard: Window {
  private let gauges = [ProgressView(style: Style(foreground: .yellow)), ProgressView(style: Style(foreground: .cyan))]
  private let screen = StackView(.vertical)
  private var samples: [[String]] = []
  private lazy var list = ListView { [unowned self] index, reused in
    let row = reused ?? ListRow()
    row.texts = samples[samples.count - 1 - index]
    return row
  }

  init() {
    super.init()
    for (title, gauge) in zip(["Load", "Memory"], gauges) {
      screen.addArrangedSubview(BoxView(title, content: gauge))
    }
    list.columns = ["Sample", "Load", "Memory"].map { ListColumn($0, width: 10, alignment: .right) }
    screen.addArrangedSubview(BoxView("Samples", content: list), isFlexible: true)
    screen.addArrangedSubview(
      Button("[ Clear ]") { [unowned self] in
        samples = []
        list.rowCount = 0
      })
    addSubview(screen)
    list.becomeFirstResponder()
  }

  override func layoutSubviews() { screen.frame = bounds }

  override func keyPressed(_ key: KeyEvent) {
    if key == KeyEvent(.character("q")) { application?.terminate() } else { super.keyPressed(key) }
  }

  func show(_ sample: [Double]) {
    for (gauge, value) in zip(gauges, sample) { gauge.progress = value }
    samples.append(["\(samples.count + 1)"] + sample.map { "\(Int($0 * 100)) %" })
    list.insertRows(at: 0..<1)
  }
}

let window = Dashboard()
let thread = Thread {
  RunLoop.current.schedule(in: .zero, repeating: .seconds(1)) { _ in
    var load = 0.0
    getloadavg(&load, 1)
    let memory = Double(sysconf(Int32(_SC_AVPHYS_PAGES))) / Double(sysconf(Int32(_SC_PHYS_PAGES)))
    let sample = [min(load / Double(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1), 1 - memory]
    // Views belong to the main thread. Its loop receives the sample, a value, and shows it at the end of the turn.
    RunLoop.main.perform { MainActor.assumeIsolated { window.show(sample) } }
  }
  RunLoop.current.run()
}
thread.start()
do { try Application(device: Terminal(), window: window).run() } catch { print(error) }
