// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

extension SteppedTime {
  /// The milliseconds of virtual time since the clock started.
  package var milliseconds: Int { Int(now.nanoseconds / 1_000_000) }

  /// Logs an entry with the current virtual time in milliseconds: `T20`.
  package func stamp(_ log: Log, _ entry: String) { log.write("\(entry)\(milliseconds)") }
}
