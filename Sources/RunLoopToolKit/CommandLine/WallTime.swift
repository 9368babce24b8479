// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The time of day for times of the monotonic clock.
enum WallTime {
  /// Converts a monotonic time to nanoseconds since 1970, using the current offset between the clocks.
  private static func wall(_ monotonic: Int64) -> Int64 {
    crl_wall_nanoseconds() + (monotonic - crl_monotonic_nanoseconds())
  }

  /// Formats the local time with milliseconds.
  static func text(_ monotonic: Int64) -> String { formatted(wall(monotonic), "%H:%M:%S", isLocal: true, digits: 3) }

  /// Formats the time in UTC according to ISO 8601.
  static func json(_ monotonic: Int64) -> String {
    formatted(wall(monotonic), "%Y-%m-%dT%H:%M:%S", isLocal: false, digits: 6) + "Z"
  }

  static func formatted(_ wall: Int64, _ format: String, isLocal: Bool, digits: Int) -> String {
    let (seconds, rest) = wall.quotientAndRemainder(dividingBy: 1_000_000_000)
    var time = time_t(rest < 0 ? seconds - 1 : seconds)
    let nanoseconds = rest < 0 ? rest + 1_000_000_000 : rest
    var parts = tm()
    _ = isLocal ? localtime_r(&time, &parts) : gmtime_r(&time, &parts)
    var text = [CChar](repeating: 0, count: 64)
    let length = strftime(&text, 64, format, &parts)
    let fraction = "\(1_000_000_000 + nanoseconds)".dropFirst().prefix(digits)
    return "\(String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)).\(fraction)"
  }
}
