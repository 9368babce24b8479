// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

/// Says for what a test waits, when it has waited long.
///
/// A wait for an event has no limit that would be right on every machine, so it ends with the event. A wait that never
/// ends would say nothing, however: after half a minute, and every half a minute again, it tells the standard error
/// where it is.
struct Patience {
  private static let span: Duration = .seconds(30)

  private let place: String
  private let begun = Tick.monotonicNow
  /// When there is something to tell.
  private(set) var end = Tick.after(span)

  init(_ file: String, _ line: Int) { place = "\(file):\(line)" }

  /// Tells, if it is time to.
  mutating func check() {
    let now = Tick.monotonicNow
    guard now >= end else { return }
    end = .after(Self.span)
    let seconds = (now.nanoseconds - begun.nanoseconds) / 1_000_000_000
    let text = Array("\(place): still waiting after \(seconds) seconds\n".utf8)
    _ = write(STDERR_FILENO, text, text.count)
  }
}

/// Looks again and again until something is as it should be.
package func waitUntil(
  file: String = #fileID, line: Int = #line, _ condition: () throws -> Bool
) rethrows {
  var patience = Patience(file, line)
  var looks = 0
  while try !condition() {
    looks += 1
    // Soon, as a rule. Later, whoever is waited for needs the processor more.
    if looks < 1000 { sched_yield() } else { usleep(1000) }
    patience.check()
  }
}
