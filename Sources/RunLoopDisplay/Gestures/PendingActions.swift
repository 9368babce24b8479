// SPDX-License-Identifier: Apache-2.0

/// The actions to call before the loop waits, in order, each with the report that it is called for.
///
/// A `changed` report replaces a preceding `changed` report of the same recogniser.
@MainActor
struct PendingActions {
  private var entries: [(recognizer: GestureRecognizer, report: GestureRecognizer.Report)] = []
  private var first = 0

  init() {}

  var count: Int { entries.count - first }

  /// The recogniser whose action is next.
  var next: GestureRecognizer? { count > 0 ? entries[first].recognizer : nil }

  mutating func append(_ recognizer: GestureRecognizer, _ report: GestureRecognizer.Report) {
    if first < entries.count, let last = entries.last, last.recognizer === recognizer, last.report.state == .changed,
      report.state == .changed
    {
      entries[entries.count - 1].report = report
    } else {
      entries.append((recognizer, report))
    }
  }

  mutating func takeFirst() -> (GestureRecognizer, GestureRecognizer.Report)? {
    guard first < entries.count else { return nil }
    defer {
      first += 1
      if first == entries.count {
        entries.removeAll(keepingCapacity: true)
        first = 0
      }
    }
    return entries[first]
  }
}
