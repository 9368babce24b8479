// SPDX-License-Identifier: Apache-2.0

import CRace
import Glibc
import RunLoopCore
import RunLoopDisplay
import RunLoopTransactions

/// A drawing: a line of text in its own canvas.
private struct Line: Sendable {
  let width: Int
  let text: String

  /// A row of a list, as wide as a terminal.
  static let row = Line(width: 80, text: "a row of a list that is as wide as most terminals are, in two styles")
  /// A minimal drawing.
  static let word = Line(width: 12, text: "drawing")

  @inline(never)
  func draw(_ number: Int) -> Grid {
    var canvas = Canvas(size: Size(width: width, height: 1))
    canvas.draw(text, at: .zero, style: Style(attributes: number % 2 == 0 ? [] : .bold))
    return canvas.grid
  }

  /// Draws on the calling thread; the result depends on every drawing, so that none is optimized out.
  @inline(never)
  func drawHere(_ numbers: Range<Int>) -> Int { numbers.reduce(0) { $0 &+ draw($1).size.width } }
}

/// Returns the processor time of the calling thread in nanoseconds.
private func threadTime() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Runs a loop until all expected completions have been called.
private final class Completions: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private let loop = RunLoop.current
  private var left: Int

  init(_ count: Int) { left = count }

  func take(_ count: Int) {
    left -= count
    if left == 0 { loop.stop() }
  }

  func wait() { loop.runUntilStopped() }
}

/// A 60 Hz timer, and the longest time between two of its beats.
private final class Beat: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  static let frame: Int64 = 16_666_667
  private(set) var worst: Int64 = 0
  private var last = race_now()
  private var timer: Timer?

  init() {
    let loop = RunLoop.current
    let interval = Duration.nanoseconds(Beat.frame)
    let timer = Timer(deadline: loop.now.advanced(by: interval), interval: interval) { [unowned self] _ in
      let now = race_now()
      worst = max(worst, now - last)
      last = now
    }
    loop.add(timer, forMode: .default)
    self.timer = timer
  }

  /// Counts the end as a beat, as the loop may have been busy until then.
  func end() -> Int64 {
    timer?.invalidate()
    return max(worst, race_now() - last)
  }
}

/// Adds `count` drawings on the loop's thread, in transactions of a thousand, and waits for them.
private func drawByWorkers(_ count: Int, _ line: Line) {
  let completions = Completions(count)
  let each = count / 100
  for _ in 0..<100 {
    let transaction = AsyncTransaction()
    transaction.add(count: each) { index, _ in
      line.draw(index)
    } completion: { results in
      completions.take(results.count)
    }
    transaction.commit()
  }
  completions.wait()
}

/// D1: 100,000 small drawings while a 60 Hz timer beats.
///
/// The control is the beat of a loop that is idle for the same time.
let d1: @Sendable () -> Void = {
  let count = Int(race_scaled(100_000, 1000))
  // Starts the workers, and touches the memory.
  drawByWorkers(count, .row)
  var begin = race_now()
  var beat = Beat()
  race_check(Line.row.drawHere(0..<count) > 0, "nothing was drawn")
  let work = race_now() - begin
  let here = beat.end()
  begin = race_now()
  beat = Beat()
  drawByWorkers(count, .row)
  let total = race_now() - begin
  let away = beat.end()
  beat = Beat()
  RunLoop.current.run(mode: .default, for: .nanoseconds(max(total, 10 * Beat.frame)))
  let control = beat.end()
  race_report("worst gap above the control's", Double(away - control) / Double(Beat.frame), "frames")
  race_report("time, as a part of what the loop's thread needs", Double(total) / Double(work), "times")
  race_report("drawing", Double(work) / Double(count), "ns")
  race_set_peer("the loop's own thread")
  race_report("worst gap above the control's", Double(here - control) / Double(Beat.frame), "frames")
}

/// D2: the cost for the loop's thread of handing drawings to workers and receiving the results.
let d2: @Sendable () -> Void = {
  let count = Int(race_scaled(100_000, 6400)) / 6400 * 6400
  let line = Line.word
  drawByWorkers(count, line)
  func measure(_ metric: String, _ handOver: () -> Void) {
    let before = threadTime()
    handOver()
    race_report(metric, Double(threadTime() - before) / Double(count), "ns")
  }
  measure("drawn by the loop's thread") { race_check(line.drawHere(0..<count) > 0, "nothing was drawn") }
  measure("handed over one by one") {
    let completions = Completions(count)
    for _ in 0..<100 {
      let transaction = AsyncTransaction()
      for number in 0..<count / 100 {
        transaction.add { _ in
          line.draw(number)
        } completion: { _ in
          completions.take(1)
        }
      }
      transaction.commit()
    }
    completions.wait()
  }
  measure("handed over in blocks of 64") {
    let completions = Completions(count)
    for _ in 0..<100 {
      let transaction = AsyncTransaction()
      for block in 0..<count / 6400 {
        transaction.add { _ in
          (0..<64).map { line.draw(block * 64 + $0) }
        } completion: { result in
          completions.take((try? result.get())?.count ?? 0)
        }
      }
      transaction.commit()
    }
    completions.wait()
  }
  measure("handed over by add(count:)") { drawByWorkers(count, line) }
}
