// SPDX-License-Identifier: Apache-2.0

/// A parsed `Content-Range`, such as `bytes 10-19/20`, or `bytes */20` if there is no range.
struct ContentRange: Hashable, Sendable {
  /// The positions of the first and the last byte.
  var bounds: ClosedRange<Int64>?
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
    // One more than the last position would overflow.
    guard last < .max else { return nil }
    bounds = first...last
  }

  private static func number(_ text: Substring) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }
}

extension Head {
  /// Whether a partial response contains the complete body.
  var isWhole: Bool {
    guard let content = headers["Content-Range"].flatMap(ContentRange.init), let bounds = content.bounds else {
      return false
    }
    let count = bounds.upperBound + 1
    return bounds.lowerBound == 0 && content.total == count && (length == nil || length == count)
  }
}

/// A validator that identifies a version of a body: a strong entity tag or a date.
struct Validator: Hashable, Sendable, Codable {
  var text: String

  /// The validator in the headers, if it is strong enough to continue a body.
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

  /// Creates a validator from a tag or a date, or returns nil if the text is not a valid header value.
  init?(text: String) {
    guard HTTP.Headers.isValue(text) else { return nil }
    self.text = text
  }

  /// Whether the headers belong to another version.
  func isContradicted(by headers: HTTP.Headers) -> Bool {
    let other = text.hasPrefix("\"") ? headers["ETag"] : headers["Last-Modified"]
    return other.map { $0 != text } ?? false
  }
}
