// SPDX-License-Identifier: Apache-2.0

/// A function of the user's, and where in its file, as a timeline shows it.
package struct TimelineName: Sendable, Hashable {
  package var function: String
  package var file: String?
  package var line: Int?

  package init(function: String, file: String?, line: Int?) {
    self.function = function
    self.file = file
    self.line = line
  }

  /// The last part of the file's path, and the line; empty: not known.
  package var place: String {
    guard let file, let line else { return "" }
    return "\(file.split(separator: "/").last.map(String.init) ?? file):\(line)"
  }
}

/// What the addresses in a timeline are called.
package struct TimelineNames: Sendable {
  package var functions: [UInt64: TimelineName]
  package var sites: [UInt64: TimelineName]

  package init(functions: [UInt64: TimelineName] = [:], sites: [UInt64: TimelineName] = [:]) {
    self.functions = functions
    self.sites = sites
  }

  /// The user's code; where only a thunk is known, the place that it comes from stands for it.
  package func code(_ item: Timeline.Item) -> TimelineName? { functions[item.code] ?? sites[item.site] }
  /// Where the work comes from.
  package func posted(_ item: Timeline.Item) -> TimelineName? { item.isRun ? nil : sites[item.site] }

  /// What is called, or what kind of thing it is.
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

  /// The name of a kind of the layout.
  package static func kindName(_ kind: UInt8) -> String {
    Int(kind) < kindNames.count ? kindNames[Int(kind)] : "unknown"
  }

  /// A mode as people call it.
  package static func shortened(_ mode: String) -> String { mode == "kCFRunLoopDefaultMode" ? "default" : mode }
}
