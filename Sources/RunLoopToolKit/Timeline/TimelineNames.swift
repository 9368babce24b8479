// SPDX-License-Identifier: Apache-2.0

/// A function in the user's code with its place in the source, as shown in a timeline.
package struct TimelineName: Sendable, Hashable {
  package var function: String
  package var file: String?
  package var line: Int?

  package init(function: String, file: String?, line: Int?) {
    self.function = function
    self.file = file
    self.line = line
  }

  /// The last component of the file's path and the line, or an empty string.
  package var place: String {
    guard let file, let line else { return "" }
    return "\(file.split(separator: "/").last.map(String.init) ?? file):\(line)"
  }
}

/// The symbols of the addresses in a timeline.
package struct TimelineNames: Sendable {
  package var functions: [UInt64: TimelineName]
  package var sites: [UInt64: TimelineName]

  package init(functions: [UInt64: TimelineName] = [:], sites: [UInt64: TimelineName] = [:]) {
    self.functions = functions
    self.sites = sites
  }

  /// Returns the user's code, or the place that posted it if only a thunk is known.
  package func code(_ item: Timeline.Item) -> TimelineName? { functions[item.code] ?? sites[item.site] }
  /// Returns the place that posted the work.
  package func posted(_ item: Timeline.Item) -> TimelineName? { item.isRun ? nil : sites[item.site] }

  /// Returns the called function, or the kind of the item.
  package func title(_ item: Timeline.Item) -> String {
    if item.isSleep { return item.descriptor.map { "sleep, until descriptor \($0) was ready" } ?? "sleep" }
    if item.isRun { return "\(Timeline.kindName(item.kind)) \(item.mode.map(Timeline.shortened) ?? "")" }
    return code(item)?.function ?? Timeline.kindName(item.kind)
  }
}

extension Timeline {
  private static let kindNames = [
    "", "block", "perform", "job", "timer", "source0", "source1", "observer", "mainQueue", "schedule", "cancel", "host",
    "sleep", "run",
  ]

  /// Returns the name of a kind in records.
  package static func kindName(_ kind: UInt8) -> String {
    Int(kind) < kindNames.count ? kindNames[Int(kind)] : "unknown"
  }

  /// Returns the short name of a mode.
  package static func shortened(_ mode: String) -> String { mode == "kCFRunLoopDefaultMode" ? "default" : mode }
}
