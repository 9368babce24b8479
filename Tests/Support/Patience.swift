// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

/// Reports the location of a test's wait when it takes long.
///
/// No limit for an event would be right on every machine, so the wait ends only with the event. To make a hang
/// visible, the wait prints its location on standard error every half minute.
struct Patience {
  private static let span: Duration = .seconds(30)

  private let place: String
  private let begun = Tick.monotonicNow
  /// When the next report is due.
  private(set) var end = Tick.after(span)

  init(_ file: String, _ line: Int) { place = "\(file):\(line)" }

  /// Prints a report if one is due.
  mutating func check() {
    let now = Tick.monotonicNow
    guard now >= end else { return }
    end = .after(Self.span)
    let seconds = (now.nanoseconds - begun.nanoseconds) / 1_000_000_000
    let text = Array("\(place): still waiting after \(seconds) seconds\n".utf8)
    _ = write(STDERR_FILENO, text, text.count)
  }
}

/// Polls until a condition holds.
package func waitUntil(
  file: String = #fileID, line: Int = #line, _ condition: () throws -> Bool
) rethrows {
  var patience = Patience(file, line)
  var looks = 0
  while try !condition() {
    looks += 1
    // Usually the condition holds soon. If not, the other thread needs the processor more.
    if looks < 1000 { sched_yield() } else { usleep(1000) }
    patience.check()
  }
}
