// SPDX-License-Identifier: Apache-2.0

/// Which part of a whole an answer has: `bytes 10-19/20`, or `bytes */20` where it has none.
struct ContentRange: Hashable, Sendable {
  /// The first and the last byte.
  var bounds: ClosedRange<Int64>?
  /// How many bytes the whole has.
  var total: Int64?

  init?(_ text: String) {
    let parts = text.split(separator: " ", omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    if halves[1] != "*" {
      guard let total = Self.number(halves[1]) else { return nil }
      self.total = total
    }
    guard halves[0] != "*" else { return }
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last else {
      return nil
    }
    if let total, last >= total { return nil }
    // The length up to there could not be counted.
    guard last < .max else { return nil }
    bounds = first...last
  }

  private static func number(_ text: Substring) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }
}

extension Head {
  /// Whether it is the head of a part that is the whole.
  var isWhole: Bool {
    guard let content = headers["Content-Range"].flatMap(ContentRange.init), let bounds = content.bounds else {
      return false
    }
    let count = bounds.upperBound + 1
    return bounds.lowerBound == 0 && content.total == count && (length == nil || length == count)
  }
}

/// By what a server knows a version of a body: a strong tag or a date.
struct Validator: Hashable, Sendable, Codable {
  var text: String

  /// What a head names, if it is fit for going on with a body.
  init?(_ headers: HTTP.Headers) {
    if let tag = headers["ETag"] {
      guard tag.hasPrefix("\""), tag.hasSuffix("\""), tag.utf8.count >= 2 else { return nil }
      self.init(text: tag)
    } else if let date = headers["Last-Modified"], WebDate.read(date) != nil {
      self.init(text: date)
    } else {
      return nil
    }
  }

  /// A tag or a date; nil if it cannot be sent in a field.
  init?(text: String) {
    guard HTTP.Headers.isValue(text) else { return nil }
    self.text = text
  }

  /// Whether a head is of another version.
  func isContradicted(by headers: HTTP.Headers) -> Bool {
    let other = text.hasPrefix("\"") ? headers["ETag"] : headers["Last-Modified"]
    return other.map { $0 != text } ?? false
  }
}
