// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// Parses dates in headers and cookies, in all formats used in practice (RFC 6265, section 5.1.1).
enum WebDate {
  private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

  /// Parses a date, and returns seconds since 1970, or nil if the text is not a date.
  static func read(_ text: String) -> Int64? {
    var (day, month, year): (Int?, Int?, Int?)
    var time: (Int, Int, Int)?
    // Words consist of letters, digits and colons; everything else is a delimiter.
    for word in text.split(whereSeparator: { !($0.isLetter || $0.isNumber || $0 == ":") }) {
      if time == nil, word.contains(":") {
        let parts = word.split(separator: ":").map { Int($0) }
        guard parts.count == 3, let hour = parts[0], let minute = parts[1], let second = parts[2],
          (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        time = (hour, minute, second)
      } else if let number = Int(word) {
        if day == nil, word.count <= 2 {
          day = number
        } else if year == nil, word.count == 2 || word.count == 4 {
          year = word.count == 4 ? number : number < 70 ? 2000 + number : 1900 + number
        }
      } else if month == nil, let index = months.firstIndex(of: word.lowercased().prefix(3).description) {
        month = index + 1
      }
    }
    guard let day, let month, let year, let time, (1...31).contains(day), year >= 1601 else { return nil }
    return days(year, month, day) * 86_400 + Int64(time.0 * 3600 + time.1 * 60 + time.2)
  }

  /// The number of days since 1970 in the Gregorian calendar.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = year / 400
    let ofEra = year - era * 400
    let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return Int64(era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468)
  }

  /// The current time in seconds since 1970.
  static var now: Int64 { Int64(time(nil)) }
}
