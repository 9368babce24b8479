// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// `runloop why-alive`: shows what keeps the run loops of a process from ending.
struct WhyAliveCommand: ObservingCommand {
  static let name = "why-alive"
  static let usage = """
    usage: runloop why-alive PID|NAME [--for SECONDS] [--thread NAME] [--json]

    Shows what keeps the run of each run loop of a process from ending: the items of its mode, with the
    places where they were added or the functions that are called, and the blocks that wait; like ones
    together, with their number. The process answers by a thread of its own, which every process has that
    has RunLoopInstruments or RunLoopKit, unless RUNLOOP_INSTRUMENTS was off when it was started. Where
    something was added at the level off is not known.

      --for SECONDS  looks twice, and says of what there is more after so long
      --thread NAME  only the loop of the thread of that name
      --json         prints {"loops": [{"tid", "thread", "mode", "running", "reasons": [{"kind", "modes",
                     "code", "added", "detail"}]}]}; the kinds are timer, source0, port, descriptor, signal,
                     child, listener, files, mainQueue, block, perform, host and resident. With --for each
                     loop also has "groups": [{"count", "growth", "kind", "code", "added", "detail"}], of like
                     reasons, with how many more there are than at the first look

    Exit status: 0, 1 if there is no answer, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(values: ["--for", "--thread"])

  private let process: Int32
  private let seconds: Double?
  private let thread: String?
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    process = try arguments.process()
    thread = arguments.values["--thread"]
    isJSON = arguments.isJSON
    let time = arguments.values["--for"]
    seconds = time.flatMap { Double($0) }.flatMap { $0 > 0 && $0 <= 3600 ? $0 : nil }
    if let time, seconds == nil {
      throw .init(messages: ["\"\(time)\" is no number of seconds between 0 and 3600"])
    }
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    let target = try TargetProcess(process)
    var first: [LoopAnswer]?
    if let seconds {
      first = try LoopAnswer.read("reasons", target, thread: thread)
      usleep(UInt32(seconds * 1e6))
    }
    let loops = try LoopAnswer.read("reasons", target, thread: thread)
    let names = ReasonNames(
      Symbolizer(target.loadedImages, source: ExternalSymbolizer(of: target.user)), loops.flatMap(\.reasons))
    let groups = loops.map { loop in
      let earlier = first.map { loops in loops.first { $0.thread == loop.thread }?.reasons ?? [] }
      return ReasonGroup.groups(of: loop.reasons, since: earlier)
    }
    if isJSON {
      output.print(JSON.object([("loops", .list(zip(loops, groups).map { json($0, $1, names) }))]).line)
    } else {
      for (loop, groups) in zip(loops, groups) { show(loop, groups, names, output) }
      if loops.isEmpty { output.print("No thread of process \(process) has a run loop.") }
    }
    return CommandStatus.success.rawValue
  }

  private func json(_ loop: LoopAnswer, _ groups: [ReasonGroup], _ names: ReasonNames) -> JSON {
    func members(_ reason: LoopAnswer.Reason, _ detail: String) -> [(String, JSON)] {
      [
        ("code", CodePlace.json(names.code(reason))), ("added", CodePlace.json(names.added(reason))),
        ("detail", .text(detail)),
      ]
    }
    let reasons = loop.reasons.map { reason in
      JSON.object(
        [("kind", .text(reason.kind)), ("modes", .list(reason.modes.map { .text($0) }))]
          + members(reason, reason.detail))
    }
    let grouped = groups.map { group in
      JSON.object(
        [
          ("count", .int(group.count)), ("growth", .optional(group.growth)), ("kind", .text(group.reason.kind)),
        ] + members(group.reason, group.detail))
    }
    return .object(
      [
        ("tid", .int(loop.thread)), ("thread", .text(loop.name)), ("mode", .optional(loop.mode)),
        ("running", .bool(loop.isRunning)), ("reasons", .list(reasons)),
      ] + (seconds == nil ? [] : [("groups", .list(grouped))]))
  }

  private func show(_ loop: LoopAnswer, _ groups: [ReasonGroup], _ names: ReasonNames, _ output: Output) {
    guard loop.isRunning, let mode = loop.mode else {
      return output.print("\(loop.name) (\(loop.thread)) runs no mode; nothing keeps it")
    }
    let title = "\(loop.name) (\(loop.thread)) runs \(mode), depth \(loop.depth); "
    output.print(title + (loop.reasons.isEmpty ? "nothing keeps it: it ends after this pass" : "it stays because of"))
    let rows = groups.map { group in
      let growth = group.growth.map { $0 == 0 ? "" : "\($0 > 0 ? "+" : "")\(Text.grouped($0))" } ?? ""
      let place = (names.added(group.reason) ?? names.code(group.reason))?.text ?? "–"
      return [
        "", group.count > 1 ? "\(Text.grouped(group.count)) ×" : "", group.reason.kind, group.detail, place,
        growth.isEmpty ? "" : "\(growth) in \(seconds ?? 0) s",
      ]
    }
    for line in Text.table(rows, rightAligned: [1]) { output.print(line) }
  }
}

/// Reasons that differ only in their next fire dates.
struct ReasonGroup {
  let reason: LoopAnswer.Reason
  var count = 0
  /// The increase since an earlier observation, or nil without one.
  var growth: Int?

  /// The part of the description that applies to the whole group.
  var detail: String { count > 1 ? ReasonGroup.common(reason.detail) : reason.detail }

  private struct Key: Hashable {
    let kind: String
    let code: UInt64
    let added: [UInt64]
    let detail: String

    init(_ reason: LoopAnswer.Reason) {
      (kind, code, added, detail) = (reason.kind, reason.code, reason.added, ReasonGroup.common(reason.detail))
    }
  }

  /// The part of a description that timers of the same kind have in common.
  private static func common(_ detail: String) -> String {
    for ending in [", next in ", ", fires now", ", in "] {
      if let place = detail.firstRange(of: ending)?.lowerBound { return String(detail[..<place]) }
    }
    return detail
  }

  /// Groups equal reasons, the most frequent first and otherwise in their order.
  ///
  /// - Parameter earlier: The reasons of an earlier observation, or nil.
  static func groups(of reasons: [LoopAnswer.Reason], since earlier: [LoopAnswer.Reason]?) -> [ReasonGroup] {
    var order: [Key] = []
    var groups: [Key: ReasonGroup] = [:]
    for reason in reasons {
      let key = Key(reason)
      if groups[key] == nil { order.append(key) }
      groups[key, default: ReasonGroup(reason: reason)].count += 1
    }
    if let earlier {
      var before: [Key: Int] = [:]
      for reason in earlier { before[Key(reason), default: 0] += 1 }
      for (key, group) in groups { groups[key]?.growth = group.count - before[key, default: 0] }
    }
    // Sorts by position too, because Swift's sort is stable but not documented to be.
    return order.enumerated().compactMap { place, key in groups[key].map { (place, $0) } }
      .sorted { ($1.1.count, $0.0) < ($0.1.count, $1.0) }.map(\.1)
  }
}

/// Symbolizes the addresses in reasons.
struct ReasonNames {
  private let symbolizer: Symbolizer

  init(_ symbolizer: Symbolizer, _ reasons: [LoopAnswer.Reason]) {
    self.symbolizer = symbolizer
    symbolizer.prepare(functions: reasons.map(\.code).filter { $0 != 0 }, sites: [])
    symbolizer.prepare(callers: reasons.flatMap(\.added))
  }

  /// Returns the user's function, or the place that added it if the function is unknown.
  func code(_ reason: LoopAnswer.Reason) -> CodePlace? {
    symbolizer.place(.function, reason.code) ?? added(reason)
  }

  /// Returns the place in the user's code that added the item.
  func added(_ reason: LoopAnswer.Reason) -> CodePlace? { symbolizer.caller(reason.added) }
}
