// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import Testing

@testable import RunLoopDisplay

/// A window whose contents change with each beat.
@MainActor
private final class Page: Window {
  var beats = 0
  var draws = 0
  var keys = 0

  override var drawsContents: Bool { true }

  override func draw(_ canvas: inout Canvas) {
    draws += 1
    canvas.fill(canvas.visibleRect, beats % 2 == 0 ? "." : "#")
    canvas.draw("beat \(beats) ", at: .zero)
  }

  override func keyPressed(_ key: KeyEvent) { keys += 1 }
}

@Suite("A terminal that does not read", .timeLimit(.minutes(20)))
@MainActor
struct StalledTests {
  @Test("a terminal that does not read delays no 60 Hz beat and no key, and shows the newest frame afterwards")
  func beats() throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 40, height: 10), outputCapacity: 100)
      let page = Page()
      let application = Application(device: terminal, window: page)
      try application.start()
      let timer = RunLoop.main.schedule(in: .seconds(1) / 60, repeating: .seconds(1) / 60) { _ in
        MainActor.assumeIsolated {
          page.beats += 1
          page.setNeedsDisplay()
        }
      }
      RunLoop.main.add(timer, forMode: .common)
      @MainActor func pass(_ duration: Duration) throws { try time.advance(by: duration, inMode: application.mode) }
      try pass(.seconds(1))
      let drawn = page.draws
      #expect((59...60).contains(page.beats) && drawn > 50)
      terminal.isReading = false
      try pass(.milliseconds(500))
      terminal.type("x")
      try pass(.milliseconds(500))
      #expect(page.draws - drawn <= 1 && page.keys == 1 && (119...120).contains(page.beats))
      terminal.isReading = true
      try pass(.seconds(1))
      #expect((179...180).contains(page.beats) && page.draws - drawn > 50)
      let last = page.beats
      timer.invalidate()
      try pass(.milliseconds(100))
      #expect(terminal.line(0).hasPrefix("beat \(last) ") && terminal.errors == [])
      application.finish()
    }
  }

  @Test("a terminal that does not read is still restored at the application's end")
  func end() throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 40, height: 10), outputCapacity: 10)
      let page = Page()
      let application = Application(device: terminal, window: page)
      time.at(.milliseconds(100)) {
        MainActor.assumeIsolated {
          terminal.isReading = false
          page.setNeedsDisplay()
        }
      }
      time.at(.milliseconds(200)) { MainActor.assumeIsolated { page.beats = 9 } }
      time.at(.milliseconds(300)) { [weak application] in MainActor.assumeIsolated { application?.terminate() } }
      let end = try application.run()
      #expect(end == .terminated)
      #expect(!terminal.isOpen && terminal.modes == [7, 25])
    }
  }
}
