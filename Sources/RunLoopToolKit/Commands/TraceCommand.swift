// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// `runloop trace`: writes the activity of a process's loops as a Perfetto trace or an HTML page.
struct TraceCommand: ObservingCommand {
  static let name = "trace"
  static let usage = """
    usage: runloop trace PID --for SECONDS --output FILE.pftrace|FILE.html [--thread NAME] [--json]
           runloop trace --from FILE --output FILE.pftrace|FILE.html [--thread NAME] [--json]

    Writes what the run loops of a process call while it looks on: each call-out, sleep and run with its
    code, from where it was posted, and what has caused it; of a hang, a call-out of 250 milliseconds and more
    in which no run is nested, also where its thread stood. The process records meanwhile. It ends earlier
    when the process does, or at a key that interrupts it; what was seen is written.

      --for SECONDS   how long to look
      --from FILE     reads a record that was kept, instead of a process: see "runloop record --help"
      --output FILE   .pftrace: for ui.perfetto.dev; .html: one page that needs nothing else
      --thread NAME   only the loop of the thread of that name
      --json          prints {"file", "records", "loops", "edges", "hangs", "lost", "torn", "causes":
                      [{"from": {"tid", "thread", "kind"}, "to": {"tid", "thread", "kind"}, "count"}]}:
                      what has caused which call-outs, and what was waited for; without a kind, a thread

    Exit status: 0, 1 if there is nothing to be read or the file cannot be written, 2 for arguments that make
    no sense.
    """
  static let options = Arguments.Options(values: ["--for", "--from", "--output", "--thread"])

  private let process: Int32?
  private let source: String?
  private let seconds: Double
  private let path: String
  private let isPage: Bool
  private let thread: String?
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    var mistakes: [String] = []
    let word = arguments.words.first
    process = word.flatMap { Int32($0) }
    source = arguments.values["--from"]
    if let word, process ?? 0 <= 0 { mistakes.append("\"\(word)\" is no number of a process") }
    if (word == nil) == (source == nil) || arguments.words.count > 1 || arguments.rest != nil {
      mistakes.append("name one process, or one file with --from")
    }
    let time = arguments.values["--for"]
    seconds = time.flatMap { Double($0) } ?? 0
    if word != nil {
      if let time {
        if !(seconds > 0 && seconds <= 86_400) {
          mistakes.append("\"\(time)\" is no number of seconds between 0 and 86,400")
        }
      } else {
        mistakes.append("say how long to look with --for SECONDS")
      }
    } else if time != nil, source != nil {
      mistakes.append("--for is for a process that runs, and not for a record")
    }
    path = arguments.values["--output"] ?? ""
    isPage = path.hasSuffix(".html")
    if !isPage, !path.hasSuffix(".pftrace") {
      mistakes.append("say where to write with --output FILE.pftrace or --output FILE.html")
    }
    thread = arguments.values["--thread"]
    isJSON = arguments.isJSON
    if !mistakes.isEmpty { throw Arguments.Mistakes(messages: mistakes) }
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    // Opened first, to ensure that the result can be written.
    let target = try OutputFile(path)
    do throws(RecordError) {
      let (file, all) = try read()
      var timeline = all
      if let thread {
        guard timeline.lanes.contains(where: { $0.name == thread }) else {
          throw RecordError("there is no record of a run loop on a thread named \"\(thread)\"")
        }
        timeline.keep { $0.name == thread }
      }
      let names = TimelineNames(of: timeline, in: file)
      try write(timeline, names, to: target)
      try target.finish()
      report(timeline, lostLoops: file.lostLoops, output)
      return CommandStatus.success.rawValue
    } catch {
      target.remove()
      throw error
    }
  }

  private func read() throws(RecordError) -> (RecordFile, Timeline) {
    if let source {
      let file = try RecordFile(path: source)
      let reader = TimelineReader(file)
      try reader.read()
      return (file, reader.finish())
    }
    let target = try TargetProcess(process ?? 0)
    let permission = AgentConnection.permission(of: target)
    defer { withExtendedLifetime(permission) {} }
    let file = try target.openRecords()
    let stacks = HangStacks(of: target, file)
    var timeline = try TimelineWatch(target, file).look(for: Int64(seconds * 1e9)) { stacks.look() }
    timeline.add(stacks.hangs())
    return (file, timeline)
  }

  private func write(_ timeline: Timeline, _ names: TimelineNames, to target: OutputFile) throws(RecordError) {
    if isPage {
      var page = TimelinePage(timeline, names)
      try page.write(target.write)
    } else {
      try PerfettoTrace(timeline, names, emit: target.write).write()
    }
  }

  private func report(_ timeline: Timeline, lostLoops: Int, _ output: Output) {
    let hangs = timeline.lanes.reduce(0) { $0 + $1.hangs.count }
    if isJSON {
      let document = JSON.object([
        ("file", .text(path)), ("records", .int(timeline.itemCount)), ("loops", .int(timeline.lanes.count)),
        ("edges", .int(timeline.edges.count)), ("hangs", .int(hangs)), ("lost", .int(timeline.lost)),
        ("torn", .int(timeline.torn)), ("causes", .list(timeline.causes.map(TraceCommand.json))),
      ])
      return output.print(document.line)
    }
    output.print(
      "\(path): \(timeline.itemCount) records of \(timeline.lanes.count) loops in "
        + "\(Text.duration(timeline.end - timeline.begin)), \(timeline.edges.count) causes, \(hangs) hangs")
    if lostLoops > 0 { output.print("\(lostLoops) loops found no room for records, and are not shown") }
    if timeline.lost > 0 {
      output.print("\(timeline.lost) records were overwritten before they could be read")
    }
    if timeline.leftOut > 0 { output.print("\(timeline.leftOut) records were left out, as there were too many") }
    if timeline.torn > 0 { output.print("\(timeline.torn) records contradict themselves and were left out") }
    if timeline.lostCauses > 0 {
      output.print("\(timeline.lostCauses) causes are not known, as their records were overwritten")
    }
  }
}

extension TraceCommand {
  private static func json(_ cause: Timeline.CauseCount) -> JSON {
    .object([("from", json(cause.from)), ("to", json(cause.to)), ("count", .int(cause.count))])
  }

  private static func json(_ doer: Timeline.Doer) -> JSON {
    .object([
      ("tid", .int(Int(doer.thread))), ("thread", .text(doer.name)), ("kind", .optional(doer.kind.map(KindName.of))),
    ])
  }
}

extension TimelineNames {
  /// Symbolizes the addresses in a timeline.
  init(of timeline: Timeline, in file: RecordFile) {
    var codes: Set<UInt64> = []
    var places: Set<UInt64> = []
    for lane in timeline.lanes {
      for item in lane.items {
        if item.code != 0 { codes.insert(item.code) }
        if item.site != 0 { places.insert(item.site) }
      }
    }
    let symbolizer = Symbolizer(file.images, source: ExternalSymbolizer(of: file.owner))
    symbolizer.prepare(functions: Array(codes), sites: Array(places))
    self.init()
    for code in codes { functions[code] = symbolizer.place(.function, code).map(TimelineName.init) }
    for place in places { sites[place] = symbolizer.place(.site, place).map(TimelineName.init) }
  }
}

extension TimelineName {
  init(_ place: CodePlace) { self.init(function: place.function, file: place.file, line: place.line) }

  /// A function of a stack, marked if it is a guess.
  init(_ place: StackPlace) {
    self.init(place.place)
    if !place.isProved { function = "? \(function)" }
  }
}
