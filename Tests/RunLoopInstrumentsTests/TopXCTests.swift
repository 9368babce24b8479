// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopDisplayTesting
import RunLoopToolKit
import XCTest

import class RunLoopCore.RunLoop
import class RunLoopCore.Timer

/// Runs the application until `isDone`, which is polled, returns true, and returns how it ended.
@MainActor
private func runTop(_ top: Top, _ terminal: HeadlessTerminal, until isDone: @escaping @MainActor () -> Bool) throws
  -> Top.End
{
  let asks = RunLoop.main.schedule(in: .zero, repeating: .milliseconds(20)) { _ in
    MainActor.assumeIsolated { if isDone() { terminal.press(.character("q")) } }
  }
  RunLoop.main.add(asks, forMode: .common)
  defer { asks.invalidate() }
  return try top.run()
}

@MainActor
private func makeTop(_ victim: Victim, _ terminal: HeadlessTerminal) throws -> Top {
  let target = try TargetProcess(victim.number)
  return try Top(target, target.openRecords(), on: terminal)
}

// XCTest runs its tests on the main thread, where applications live.
final class TopXCTests: XCTestCase {
  func testWhileNothingHappensInTheProcessNothingIsLookedAtOrDrawn() throws {
    try MainActor.assumeIsolated {
      let victim = try Victim(["idle"], level: "off")
      let terminal = HeadlessTerminal(size: Size(width: 100, height: 20))
      let top = try makeTop(victim, terminal)
      var counts: [(looks: Int, frames: Int)] = []
      let end = try runTop(top, terminal) {
        guard top.isParked else { return false }
        counts.append((top.lookCount, top.application.frameCount))
        return counts.count == 20
      }
      XCTAssertEqual(end, .quit)
      // The first count may come before the frame of the last look.
      XCTAssertEqual(counts.first?.looks, counts.last?.looks)
      XCTAssertEqual(counts[2].frames, counts.last?.frames)
      XCTAssertTrue(try runloop("ps", "\(victim.number)", "--json").json()["level"] as? String == "off")
    }
  }

  func testWhatALoopCallsIsShownAndSortedByAClickOnATitle() throws {
    try MainActor.assumeIsolated {
      let victim = try Victim(["load"], level: "off")
      let terminal = HeadlessTerminal(size: Size(width: 140, height: 20))
      let top = try makeTop(victim, terminal)
      var screen = ""
      var hasClicked = false
      let end = try runTop(top, terminal) {
        screen = terminal.screen
        guard screen.contains("endlessWork()"), screen.contains("importer") else { return false }
        if !hasClicked {
          hasClicked = true
          let titles = terminal.line(1)
          guard let place = titles.range(of: "BUSY") else { return true }
          terminal.click(at: Point(x: titles.distance(from: titles.startIndex, to: place.lowerBound), y: 1))
          return false
        }
        return true
      }
      XCTAssertEqual(end, .quit)
      XCTAssertTrue(screen.contains("runloop top   process \(victim.number)"), screen)
      XCTAssertTrue(screen.contains("block"), screen)
    }
  }

  func testTheEndOfTheProcessEndsIt() throws {
    try MainActor.assumeIsolated {
      let victim = try Victim(["idle"], level: "off")
      let terminal = HeadlessTerminal()
      let top = try makeTop(victim, terminal)
      let end = try runTop(top, terminal) {
        if top.isParked { victim.kill() }
        return false
      }
      XCTAssertEqual(end, .targetEnded)
    }
  }
}
