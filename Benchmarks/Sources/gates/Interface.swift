// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopDisplayTesting

/// The cost of a frame between a view's change and the device, with an unchanged screen size.
///
/// The system calls are those of the main loop's pass, which is woken and polls its descriptors.
let interfaceGates: [Gate] = [
  Gate(name: "frame in which ten labels change", count: 1000) { count, measure in
    MainActor.assumeIsolated {
      let window = Window()
      let labels = (0..<10).map { Label("text", frame: Rect(x: 0, y: 2 * $0, width: 40, height: 1)) }
      for label in labels { window.addSubview(label) }
      var isOdd = false
      makeFrames(count, measure, window) {
        isOdd.toggle()
        for label in labels { label.text = isOdd ? "odd" : "even" }
      }
    }
  },
  Gate(name: "frame in which a list scrolls by three rows", count: 1000) {
    count, measure in
    MainActor.assumeIsolated {
      let window = Window()
      let list = ListView { _, reused in
        if let reused {
          reused.setNeedsDisplay()
          return reused
        }
        return NumberRow()
      }
      list.rowCount = 1_000_000
      list.frame = Rect(x: 0, y: 0, width: 80, height: 24)
      window.addSubview(list)
      makeFrames(count, measure, window) { list.contentOffset.y += 3 }
    }
  },
  Gate(name: "frame in which the layout of ten views changes", count: 1000) {
    count, measure in
    MainActor.assumeIsolated {
      let window = Row()
      for _ in 0..<10 { window.addSubview(Label("text")) }
      makeFrames(count, measure, window) {
        window.shift = 1 - window.shift
        window.setNeedsLayout()
      }
    }
  },
]

/// A row that shows its number without creating a string.
private final class NumberRow: ListRow {
  private static let digits: [Character] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]

  override func draw(_ canvas: inout Canvas) {
    var rest = index
    for column in (0..<7).reversed() {
      canvas.fill(Rect(x: column, y: 0, width: 1, height: 1), Self.digits[rest % 10])
      rest /= 10
    }
  }
}

/// A window that stacks its views vertically.
private final class Row: Window {
  var shift = 0

  override func layoutSubviews() {
    for (index, view) in subviews.enumerated() { view.frame = Rect(x: shift, y: index, width: 10, height: 1) }
  }
}

/// Makes an application show frames, with a change before each.
@MainActor
func makeFrames(_ count: Int, _ measure: Measure, _ window: Window, _ change: @escaping @MainActor () -> Void) {
  let terminal = HeadlessTerminal(size: Size(width: 80, height: 24), outputCapacity: .max)
  let application = Application(device: terminal, window: window, frameInterval: .zero)
  let frames = Frames(count, measure, application, change)
  let observer = RunLoop.Observer(activities: .beforeTimers, handler: MainActor.handler { _, _ in frames.next() })
  application.loop.add(observer, forMode: .default)
  do { try application.run() } catch { fail("\(error)") }
}

/// Counts frames after a few that allocate what later ones reuse.
@MainActor
private final class Frames {
  private static let prepared = 100
  private let count: Int
  private let measure: Measure
  private let application: Application
  private let change: @MainActor () -> Void
  private var turn = 0

  init(_ count: Int, _ measure: Measure, _ application: Application, _ change: @escaping @MainActor () -> Void) {
    self.count = count
    self.measure = measure
    self.application = application
    self.change = change
  }

  func next() {
    if turn == 0 { (application.device as? HeadlessTerminal)?.discardsOutput = true }
    if turn == Self.prepared { measure.begin() }
    if turn == Self.prepared + count {
      measure.end()
      guard application.frameCount >= turn - 1 else {
        fail("there were \(application.frameCount) frames in \(turn) turns")
      }
      return application.terminate()
    }
    turn += 1
    change()
    // The following wait does not sleep.
    application.loop.wakeUp()
  }
}
