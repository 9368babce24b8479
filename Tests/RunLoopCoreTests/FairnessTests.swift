// SPDX-License-Identifier: Apache-2.0

import Dispatch
import TestSupport
import XCTest

@testable import RunLoopCore
@testable import class RunLoopCore.RunLoop

/// The fairness of a loop when several kinds of work never end, in every combination and every way of running it.
///
/// The main dispatch queue requires the real main thread, on which synchronous test methods run.
final class FairnessTests: XCTestCase {
  override func setUp() {
    // Only this package's loop serves the main dispatch queue.
    RunLoop.main.mainService?.turn(on: false)
    RunLoop.main.removeHost()
  }

  override func tearDown() { RunLoop.main.mainService?.turn(on: true) }

  // R4, R11, M19
  func testEachClassIsServedWithinFourTimesAsManyPassesAsThereAreReadyClasses() {
    var checked = 0
    for way in Way.allCases {
      for bits in 1..<(1 << ReadyKind.allCases.count) {
        let kinds = ReadyKind.allCases.filter { bits & 1 << $0.rawValue != 0 && way.serves($0) }
        // Combinations without a kind that cannot be served are checked once.
        guard kinds.count == bits.nonzeroBitCount else { continue }
        let mix = ReadyMix(kinds, on: RunLoop.main)
        way.run(mix)
        mix.end()
        XCTAssertEqual(mix.complaints, [], "\(kinds) by \(way)")
        checked += 1
      }
    }
    // All subsets, and in two of the ways only those without one kind.
    XCTAssertEqual(checked, 255 * (Way.allCases.count - 2) + 127 * 2)
  }

  // M19
  func testTheShareOfEachClassAndTheWorstDelayOfATimerArePrinted() {
    var table = ["the passes of 120 that serve each class that is always ready; the most passes to a timer"]
    for kinds: [ReadyKind] in [
      [.timers], [.timers, .mainQueue], [.timers, .descriptors], [.timers, .mainQueue, .descriptors],
      [.timers, .ports, .descriptors, .mainQueue], ReadyKind.allCases,
    ] {
      let mix = ReadyMix(kinds, on: RunLoop.main, passes: 120)
      Way.plain.run(mix)
      mix.end()
      table.append(mix.row)
      XCTAssertEqual(mix.complaints, [])
    }
    print(table.joined(separator: "\n"))
  }
}

private enum Way: CaseIterable {
  /// A single run until a stop.
  case plain
  /// Consecutive runs that each return after a source, like `run()` and Foundation's `run(mode:before:)`.
  case afterSource
  /// Runs of a single pass that does not wait.
  case polling
  case guest
  case withinTimer
  case withinSource
  case withinBlock
  case withinHandOff
  case withinMainQueue
  case withinJob

  func serves(_ kind: ReadyKind) -> Bool {
    switch self {
    case .withinMainQueue: kind != .mainQueue
    case .withinJob: kind != .jobs
    default: true
    }
  }

  func run(_ mix: ReadyMix) {
    let loop = mix.loop
    switch self {
    case .plain:
      mix.begin()
      loop.run(mode: .default, for: .unlimited)
    case .afterSource:
      mix.begin()
      while !mix.isOver { loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true) }
    case .polling:
      mix.begin()
      while !mix.isOver { loop.run(mode: .default, for: .zero) }
    case .guest:
      mix.begin()
      guard let guest = try? RunLoop.Guest() else { return XCTFail("no guest") }
      while !mix.isOver { guest.service() }
      guest.invalidate()
    case .withinTimer: nest(mix) { body in loop.after(.zero) { _ in body() } }
    case .withinSource: nest(mix) { body in loop.signalled { body() } }
    case .withinBlock: nest(mix) { body in loop.perform(body) }
    case .withinHandOff: nest(mix) { body in _ = loop.handOff(inModes: [.default], block: body) }
    case .withinMainQueue: nest(mix) { body in DispatchQueue.main.async(execute: body) }
    case .withinJob: nest(mix) { body in Task(executorPreference: LoopExecutor(loop)) { body() } }
    }
  }

  private func nest(_ mix: ReadyMix, _ post: (@escaping @Sendable () -> Void) -> Void) {
    post {
      mix.begin()
      mix.loop.runWithin()
    }
    while !mix.isOver { mix.loop.run(mode: .default, for: .zero) }
  }
}

extension RunLoop {
  /// A run nested in a call-out, including that of a task's job.
  fileprivate func runWithin() { run(mode: .default, for: .unlimited) }
}
