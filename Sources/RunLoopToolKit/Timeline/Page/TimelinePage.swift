// SPDX-License-Identifier: Apache-2.0

/// Writes a timeline as an HTML page: a single file that needs no network.
package struct TimelinePage {
  /// The maximum number of records in a page.
  ///
  /// If there are more, adjacent ones are merged.
  package static let limit = 1_000_000

  private let timeline: Timeline
  private let names: TimelineNames
  /// The table of names, each listed once.
  private var table: [TimelineName] = []
  private var placeOf: [TimelineName: Int32] = [:]
  private var modes: [String] = []
  private var threads: [Int32] = []

  package init(_ timeline: Timeline, _ names: TimelineNames, limit: Int = TimelinePage.limit) {
    self.timeline = timeline.coarsened(to: limit, names)
    self.names = names
    threads = self.timeline.threads.keys.sorted()
  }

  /// - Parameter emit: Receives the bytes of the file in parts.
  package mutating func write(_ emit: ([UInt8]) throws(RecordError) -> Void) throws(RecordError) {
    let title = TimelinePage.escaped("\(timeline.processName) (\(timeline.process)) – timeline of its run loops")
    try emit(
      Array(
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy"
          content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
        <title>\(title)</title>
        <style>
        \(Self.style)
        </style>
        </head>
        <body>
        \(Self.body)
        <script type="application/json" id="trace">

        """.utf8))
    try writeData(emit)
    try emit(
      Array(
        """

        </script>
        <script>
        \(Self.data)
        \(Self.drawing)
        \(Self.chain)
        \(Self.sites)
        \(Self.input)
        </script>
        </body>
        </html>

        """.utf8))
  }

  private mutating func writeData(_ emit: ([UInt8]) throws(RecordError) -> Void) throws(RecordError) {
    try emit(
      Array(
        ("{\"name\": \(TimelinePage.quoted(timeline.processName)), \"process\": \(timeline.process), "
          + "\"span\": \(timeline.end - timeline.begin), \"wall\": \(wallBegin), \"lost\": \(timeline.lost), \"torn\": \(timeline.torn), "
          + "\"leftOut\": \(timeline.leftOut), \"merged\": \(timeline.merged), \"lostCauses\": \(timeline.lostCauses),\n"
          + "\"lanes\": [").utf8))
    for (index, lane) in timeline.lanes.enumerated() {
      try emit(Array(((index > 0 ? ",\n" : "") + text(of: lane)).utf8))
    }
    try emit(Array("],\n\"edges\": \(edgeText()),\n\"stacks\": [\(stackText())],\n".utf8))
    let list = table.map { name in
      "[\(TimelinePage.quoted(name.function)), \(TimelinePage.quoted(name.lastOfFile)), \(name.line ?? 0)]"
    }
    let threadList = threads.map { "{\"tid\": \($0), \"name\": \(TimelinePage.quoted(timeline.threads[$0] ?? ""))}" }
    let modeList = modes.map { TimelinePage.quoted(Timeline.shortened($0)) }
    try emit(
      Array(
        ("\"names\": [\(list.joined(separator: ",\n"))],\n\"threads\": [\(threadList.joined(separator: ", "))],\n"
          + "\"modes\": [\(modeList.joined(separator: ", "))]}").utf8))
  }

  /// The beginning, in milliseconds since 1970.
  private var wallBegin: String {
    timeline.wallStart.map { "\(Double($0.addingReportingOverflow(timeline.begin).partialValue) / 1e6)" } ?? "null"
  }

  private mutating func number(_ name: TimelineName?) -> Int32 {
    guard let name else { return -1 }
    if let known = placeOf[name] { return known }
    let place = Int32(table.count)
    table.append(name)
    placeOf[name] = place
    return place
  }

  private mutating func number(ofMode mode: String?) -> UInt8 {
    guard let mode else { return 255 }
    if let known = modes.firstIndex(of: mode) { return UInt8(known) }
    guard modes.count < 255 else { return 255 }
    modes.append(mode)
    return UInt8(modes.count - 1)
  }

  private mutating func text(of lane: Timeline.Lane) -> String {
    var columns = LaneColumns(lane.items.count)
    for item in lane.items {
      columns.begin.append(Double(item.begin - timeline.begin))
      columns.end.append(Double(item.end - timeline.begin))
      columns.posted.append(item.waitsSince.map { Double($0 - timeline.begin) } ?? .nan)
      columns.kind.append(item.kind)
      columns.mode.append(number(ofMode: item.mode))
      columns.flags.append(LaneColumns.flags(of: item))
      columns.code.append(item.isCallOut ? number(names.code(item)) : -1)
      columns.site.append(number(names.sites[item.site]))
      columns.parent.append(item.parent.map { Int32($0) } ?? -1)
      columns.count.append(UInt32(clamping: item.count))
    }
    let shares = lane.shares.flatMap {
      [Double($0.begin - timeline.begin), Double($0.end - timeline.begin), $0.running, $0.runnable]
    }
    return "{\"name\": \(TimelinePage.quoted(lane.name)), \"tid\": \(lane.thread), \"lost\": \(lane.lost), "
      + "\"torn\": \(lane.torn), \(columns.text), \"shares\": \(Base64.quoted(shares))}"
  }

  /// The stacks of the shown hangs, with their items, thread states and indices of names.
  private mutating func stackText() -> String {
    var texts: [String] = []
    for hang in timeline.hangs {
      guard let place = timeline.place(of: hang) else { continue }
      let names = hang.stack.map { "\(number($0))" }.joined(separator: ", ")
      texts.append(
        "{\"lane\": \(place.lane), \"index\": \(place.index), \"state\": \(TimelinePage.quoted(hang.state)), "
          + "\"names\": [\(names)]}")
    }
    return texts.joined(separator: ",\n")
  }

  private func edgeText() -> String {
    var fromLane: [Int32] = []
    var from: [Int32] = []
    var toLane: [Int32] = []
    var to: [Int32] = []
    var kind: [UInt8] = []
    var time: [Double] = []
    let placeOfThread = Dictionary(uniqueKeysWithValues: threads.enumerated().map { ($0.element, Int32($0.offset)) })
    let laneOfThread = Dictionary(timeline.lanes.enumerated().map { ($0.element.thread, Int32($0.offset)) }) { $1 }
    for edge in timeline.edges {
      switch edge.from {
      case .item(let place):
        fromLane.append(Int32(place.lane))
        from.append(Int32(place.index))
      case .thread(let thread):
        fromLane.append(laneOfThread[thread] ?? -1 - (placeOfThread[thread] ?? Int32(threads.count)))
        from.append(-1)
      }
      toLane.append(Int32(edge.to.lane))
      to.append(Int32(edge.to.index))
      kind.append(edge.kind.rawValue)
      time.append(Double(edge.time - timeline.begin))
    }
    return "{\"fromLane\": \(Base64.quoted(fromLane)), \"from\": \(Base64.quoted(from)), "
      + "\"toLane\": \(Base64.quoted(toLane)), \"to\": \(Base64.quoted(to)), \"kind\": \(Base64.quoted(kind)), "
      + "\"time\": \(Base64.quoted(time))}"
  }
}

/// The items of a lane as columns.
private struct LaneColumns {
  var begin: [Double] = []
  var end: [Double] = []
  var posted: [Double] = []
  var kind: [UInt8] = []
  var mode: [UInt8] = []
  var flags: [UInt8] = []
  var code: [Int32] = []
  var site: [Int32] = []
  var parent: [Int32] = []
  var count: [UInt32] = []

  init(_ room: Int) {
    begin.reserveCapacity(room)
    end.reserveCapacity(room)
    posted.reserveCapacity(room)
  }

  static func flags(of item: Timeline.Item) -> UInt8 {
    (item.isOpen ? 1 : 0) | (item.isEndLost ? 2 : 0) | (item.isAwaited ? 4 : 0) | (item.descriptor == nil ? 0 : 8)
  }

  var text: String {
    "\"begin\": \(Base64.quoted(begin)), \"end\": \(Base64.quoted(end)), \"posted\": \(Base64.quoted(posted)), "
      + "\"kind\": \(Base64.quoted(kind)), \"mode\": \(Base64.quoted(mode)), \"flags\": \(Base64.quoted(flags)), "
      + "\"code\": \(Base64.quoted(code)), \"site\": \(Base64.quoted(site)), \"parent\": \(Base64.quoted(parent)), "
      + "\"count\": \(Base64.quoted(count))"
  }
}

extension TimelineName {
  fileprivate var lastOfFile: String { file?.split(separator: "/").last.map(String.init) ?? "" }
}

// Text in the page.
extension TimelinePage {
  /// Returns a JSON string literal that cannot end an HTML element.
  static func quoted(_ text: String) -> String { ForeignText.quoted(text, isInPage: true) }

  static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in ForeignText.shown(text) {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      default: escaped.append(character)
      }
    }
    return escaped
  }
}

/// Encoding of numbers as text.
enum Base64 {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Returns the bytes of numbers in this machine's little-endian order, as a quoted string.
  static func quoted<Number: BitwiseCopyable>(_ numbers: [Number]) -> String {
    numbers.withUnsafeBytes { bytes in
      var text: [UInt8] = [0x22]
      text.reserveCapacity(bytes.count / 3 * 4 + 6)
      var place = 0
      while place < bytes.count {
        let rest = bytes.count - place
        let first = bytes[place]
        let second = rest > 1 ? bytes[place + 1] : 0
        let third = rest > 2 ? bytes[place + 2] : 0
        text.append(digits[Int(first >> 2)])
        text.append(digits[Int((first & 3) << 4 | second >> 4)])
        text.append(rest > 1 ? digits[Int((second & 15) << 2 | third >> 6)] : 0x3d)
        text.append(rest > 2 ? digits[Int(third & 63)] : 0x3d)
        place += 3
      }
      text.append(0x22)
      return String(decoding: text, as: UTF8.self)
    }
  }
}
