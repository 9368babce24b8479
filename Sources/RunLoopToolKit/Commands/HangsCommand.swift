// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import CRunLoopToolKit
import RunLoopLibC
import RunLoopInstruments

/// `runloop hangs`: waits for call-outs that take too long, and reports where they hang.
struct HangsCommand: ObservingCommand {
  static let name = "hangs"
  static let usage = """
    usage: runloop hangs PID|NAME [--for SECONDS | --follow] [--threshold MS] [--backlog MS] [--thread NAME]
                         [--wait] [--exit-code] [--json]

    Waits for call-outs that last too long, and shows what was called, where it was posted from, what the
    thread did and where it stood. The process is not touched: its memory is read, it gets no signal, and
    no system call of its is interrupted. The level is record while the command looks.

      --for SECONDS   how long to look; 10 by default
      --follow        looks until the process ends or the command is interrupted, and prints a line for
                      each hang as it ends
      --threshold MS  from when on a call-out is a hang, and a timer late (for timers at least 100); 250 by
                      default, 100 for timers
      --backlog MS    from when on the oldest waiting post is a backlog, if no call-out is long; twice the
                      threshold by default
      --thread NAME   only the loop of the thread of that name
      --wait          waits until the process, or one of that name, has a run loop, and need not find the
                      thread at once
      --exit-code     exits with 3 if a loop hung, a timer was late or a descriptor was not read, and with
                      4 if none did that was seen, but the look was cut short, could not see all loops or
                      what runs on their threads besides, or saw threads that were stopped
      --json          prints {"hangs": [{"tid", "thread", "begin", "end", "class", "callOut", "cpu",
                      "blockedIn", "waitsFor", "stack", "stackProblem"}], "look": {"begin", "end",
                      "ending", "loops", "unseen", "stopped", "unread": [{"tid", "thread", "descriptor", "code"}],
                      "late": [{"tid", "thread", "code", "late", "kind"}], "silentHosts"}};
                      with --follow a line for each hang; times are nanoseconds of CLOCK_MONOTONIC; "end" is
                      null if the hang was not over, "beginTime" and "endTime" are of the wall clock, "callOut" of a backlog and where the kind of the
                      call-out is not known; with "atLeast" it had begun before the look, and "begin" is that
                      of the look; "ending" is time, interrupted, ended or executed, "unseen" the number of
                      loops that found no room to be seen, "stopped" the number of those whose threads were
                      stopped by a signal or a debugger, and "unread" are descriptors that were ready in
                      more than a thousand waits in a row while nothing was read, and "late" are timers that
                      fired later than 100 ms or the threshold after their dates and tolerances, by so many
                      nanoseconds, on loops that did not hang; with the kind "descriptor" they are descriptors that
                      may have been ready for so long, 250 ms or more, before their loop looked; "silentHosts"
                      are the threads whose loop waits in one that does not report what else it runs

    Hangs of one thread in one function are shown once, with their number.

    A look that ends early, and loops that could not be seen or were stopped, are reported in every case.

    Exit status: 0, also if the process ends meanwhile, 1 if it cannot be looked at, 2 for arguments that
    make no sense; with --exit-code also 3 and 4.
    """
  static let options = Arguments.Options(
    values: ["--for", "--threshold", "--backlog", "--thread"], flags: ["--follow", "--wait", "--exit-code"])

  private var process: Int32
  /// The name of a program to wait for.
  private var awaited: String?
  private let span: Double
  private let follows: Bool
  private let threshold: Int64
  private let backlog: Int64
  /// The lateness from which timers are reported.
  private let late: Int64
  private let thread: String?
  private let waits: Bool
  private let tellsByStatus: Bool
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    var mistakes: [String] = []
    func number(_ option: String, or standard: Double, _ unit: String) -> Double {
      guard let text = arguments.values[option] else { return standard }
      if let value = Double(text), value > 0, value <= 1e9 { return value }
      mistakes.append("\"\(text)\" is no number of \(unit) for \(option)")
      return standard
    }
    waits = arguments.flags.contains("--wait")
    process = 0
    do throws(Arguments.Mistakes) { process = try arguments.process() } catch {
      // Waits for a process without a loop yet; one that has created a loop meanwhile is found immediately.
      if waits, let word = arguments.word, Int(word) == nil, ProcessNames.numbers(named: word).count < 2 {
        awaited = word
      }
      if awaited == nil { mistakes += error.messages }
    }
    follows = arguments.flags.contains("--follow")
    if follows, arguments.values["--for"] != nil { mistakes.append("--follow and --for exclude each other") }
    span = number("--for", or: 10, "seconds")
    let milliseconds = number("--threshold", or: 250, "milliseconds")
    threshold = max(1_000_000, Int64(milliseconds * 1e6))
    late = arguments.values["--threshold"] == nil ? CRL_LATE : max(CRL_LATE, threshold)
    backlog = max(1_000_000, Int64(number("--backlog", or: 2 * milliseconds, "milliseconds") * 1e6))
    thread = arguments.values["--thread"]
    tellsByStatus = arguments.flags.contains("--exit-code")
    isJSON = arguments.isJSON
    if !mistakes.isEmpty { throw Arguments.Mistakes(messages: mistakes) }
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    if let awaited {
      guard let number = HangsCommand.wait(for: awaited) else {
        output.complain("runloop hangs: interrupted before a program \(awaited) had a run loop")
        return (tellsByStatus ? CommandStatus.unseen : .success).rawValue
      }
      var found = self
      (found.process, found.awaited) = (number, nil)
      return try found.run(output)
    }
    let target = try TargetProcess(process)
    guard let file = try records(of: target) else {
      output.complain("runloop hangs: interrupted before process \(process) had a run loop")
      return (tellsByStatus ? CommandStatus.unseen : .success).rawValue
    }
    if let thread, !waits { try LoopReader.require(thread, in: file, of: target) }
    let hold = try LevelHold(file, CRL_RECORD.rawValue)
    defer { hold.release() }
    let interruption = Interruption()
    defer { interruption.end() }
    // The permission lasts as long as the connection.
    let permission = AgentConnection.permission(of: target)
    defer { withExtendedLifetime(permission) {} }
    let faces = FileFaces(file)
    try faces.refresh()
    let settings = HangJudge.Settings.tool(threshold: threshold, backlog: backlog)
    let scout = HangScout(process: process, faces: faces, settings: settings, lateAfter: late) { [thread] slot, _ in
      thread == nil || file.threadName(slot) { target.kernelName(ofThread: $0) } == thread
    }
    if scout.memory.images.isEmpty { output.complain(HangsCommand.blindness(process, scout.memory.problem)) }
    var look = LookSummary(at: crl_monotonic_nanoseconds())
    let found = try watch(target, faces, scout, interruption, &look, output)
    look.unread = UnreadDescriptors.named(look.unread, scout, target)
    look.late = LateReport.named(scout, besides: found.map(\.thread), target)
    if follows {
      for line in look.lines(process, found: found.count, isAll: thread == nil) { output.complain(line) }
    } else {
      print(found, look, target, output)
    }
    return tellsByStatus ? look.status(found: found.count).rawValue : CommandStatus.success.rawValue
  }

  /// Waits until a program with a name has a run loop; returns nil if interrupted.
  private static func wait(for name: String) -> Int32? {
    let interruption = Interruption()
    defer { interruption.end() }
    while !interruption.hasCome {
      if let number = ProcessNames.numbers(named: name).first { return number }
      usleep(50_000)
    }
    return nil
  }

  /// Opens the records, waiting for them if requested; returns nil if interrupted.
  private func records(of target: TargetProcess) throws(RecordError) -> RecordFile? {
    guard waits else { return try target.openRecords() }
    let interruption = Interruption()
    defer { interruption.end() }
    while !interruption.hasCome {
      if let file = try target.recordsIfThere() { return file }
      usleep(20_000)
    }
    return nil
  }

  /// Observes until the end, and returns the hangs in the order of their beginnings.
  private func watch(
    _ target: TargetProcess, _ faces: FileFaces, _ scout: HangScout, _ interruption: borrowing Interruption,
    _ look: inout LookSummary, _ output: Output
  ) throws(RecordError) -> [HangReport] {
    let period = max(1_000_000, min(20_000_000, threshold / 12))
    let end = follows ? Int64.max : look.begin + Int64(span * 1e9)
    var ended: [HangReport] = []
    var lasting: [HangReport] = []
    var nextQuestion: Int64 = 0
    while true {
      let now = crl_monotonic_nanoseconds()
      look.end = now
      if now >= nextQuestion {
        look.ending = target.ending
        guard look.ending == .time else { break }
        nextQuestion = now + 100_000_000
      }
      do throws(RecordError) { try faces.refresh() } catch {
        look.ending = target.ending
        if look.ending == .time { throw error }
        break
      }
      for finding in scout.look(at: now) {
        if case .ended(let report) = finding {
          ended.append(report)
          if follows { print([report], look, target, output) }
        }
      }
      look.note(scout, unseen: faces.unseenLoops)
      lasting = scout.lasting
      if interruption.hasCome { look.ending = .interrupted }
      if now >= end || interruption.hasCome { break }
      usleep(UInt32(period / 1000))
    }
    if follows { print(lasting, look, target, output) }
    return (ended + lasting).sorted { $0.begin < $1.begin }
  }

  /// The message about missing stacks.
  private static func blindness(_ process: Int32, _ problem: String?) -> String {
    let scope = readWhole("/proc/sys/kernel/yama/ptrace_scope")?.first
    let reason =
      scope == "1" && geteuid() != 0
      ? "the kernel allows it for children only, unless /proc/sys/kernel/yama/ptrace_scope is 0"
      : problem ?? "/proc/\(process)/maps names no code"
    return "runloop hangs: the stacks of process \(process) may not be read: \(reason)"
  }

  private func print(_ reports: [HangReport], _ look: LookSummary, _ target: TargetProcess, _ output: Output) {
    guard !(follows && reports.isEmpty) else { return }
    let named = HangNames(ExternalSymbolizer(of: target.user), process: target.number).name(reports)
    if follows, isJSON {
      for hang in named { output.print(json(hang).line) }
    } else if isJSON {
      output.print(JSON.object([("hangs", .list(named.map { json($0) })), ("look", look.json)]).line)
    } else {
      for group in HangText.groups(named) { for line in HangText.lines(group) { output.print(line) } }
      if !follows {
        for line in look.lines(process, found: named.count, isAll: thread == nil) { output.print(line) }
      }
    }
  }

  private func json(_ hang: SymbolicatedHang) -> JSON {
    let report = hang.report
    let callOut = hang.kind.map { kind in
      JSON.object([
        ("kind", .text(kind)), ("code", CodePlace.json(hang.code)), ("posted", CodePlace.json(hang.posted)),
      ])
    }
    let blockedIn = report.blockedIn.map { JSON.object([("call", .text($0.call)), ("on", .optional($0.on))]) }
    let waitsFor = report.waitsForName.map { JSON.object([("thread", .text($0))]) }
    return .object(
      [
        ("tid", .int(Int(report.thread))), ("thread", .text(report.threadName)), ("begin", .int(Int(report.begin))),
        ("end", .optional(report.end.map { Int($0) })), ("class", .text(report.isBacklog ? "backlog" : "call-out")),
        ("callOut", callOut ?? .null), ("cpu", .text(report.processor.rawValue)), ("blockedIn", blockedIn ?? .null),
        ("waitsFor", waitsFor ?? .null), ("stack", .list(hang.stack.map(\.json))),
        ("stackProblem", .optional(report.stackProblem)), ("beginTime", .text(WallTime.json(report.begin))),
        ("endTime", .optional(report.end.map { WallTime.json($0) })),
      ] + (report.isOlder == true ? [("atLeast", .bool(true))] : []))
  }
}

extension StackPlace {
  /// The place in JSON; `guess` and `share` are included only if relevant.
  var json: JSON {
    guard case .object(var members) = CodePlace.json(place) else { return .null }
    if !isProved { members.append(("guess", .bool(true))) }
    if share < 100 { members.append(("share", .int(share))) }
    return .object(members)
  }

  /// The place as text, marked if it is a guess, with its share of the samples if it is not in all of them.
  var text: String { (isProved ? "" : "? ") + place.text + (share < 100 ? "  \(share) %" : "") }
}

/// Formatting of hangs as text.
enum HangText {
  /// Groups the hangs of the same thread in the same function.
  static func groups(_ hangs: [SymbolicatedHang]) -> [[SymbolicatedHang]] {
    struct Key: Hashable {
      let thread: Int32
      let isBacklog: Bool
      let kind: String?
      let code: CodePlace?
      let place: CodePlace?
    }
    var order: [Key] = []
    var groups: [Key: [SymbolicatedHang]] = [:]
    for hang in hangs {
      let key = Key(
        thread: hang.report.thread, isBacklog: hang.report.isBacklog, kind: hang.kind, code: hang.code,
        place: hang.stack.first?.place)
      if groups[key] == nil { order.append(key) }
      groups[key, default: []].append(hang)
    }
    return order.compactMap { groups[$0] }
  }

  private static func length(_ report: HangReport) -> Int64 {
    (report.end ?? crl_monotonic_nanoseconds()) - report.begin
  }

  static func longest(_ hangs: [SymbolicatedHang]) -> SymbolicatedHang? {
    hangs.max { length($0.report) < length($1.report) }
  }

  /// The length of a hang, or the lengths of the shortest and the longest of several.
  static func lengths(_ hangs: [SymbolicatedHang]) -> String {
    let lengths = hangs.map { length($0.report) }
    let (shortest, longest) = (Text.duration(lengths.min() ?? 0), Text.duration(lengths.max() ?? 0))
    return hangs.count > 1 ? "\(shortest) to \(longest)" : longest
  }

  /// Formats a group of hangs, represented by the longest one.
  static func lines(_ hangs: [SymbolicatedHang]) -> [String] {
    guard let longest = longest(hangs) else { return [] }
    var lines = lines(longest)
    guard hangs.count > 1, let first = hangs.map(\.report.begin).min(), let last = hangs.map(\.report.begin).max()
    else { return lines }
    let report = longest.report
    lines[0] =
      "\(report.threadName) (\(report.thread)) \(report.isBacklog ? "had posts waiting" : "hung") \(hangs.count) times, "
      + "for \(lengths(hangs)), from \(WallTime.text(first)) to \(WallTime.text(last)); the longest"
    return lines
  }

  static func lines(_ hang: SymbolicatedHang) -> [String] {
    let report = hang.report
    let lasted = (report.isOlder == true ? "at least " : "") + Text.duration(length(report))
    let verb =
      report.isBacklog
      ? (report.end == nil ? "has had posts waiting for" : "had posts waiting for")
      : (report.end == nil ? "hangs, so far for" : "hung for")
    let time = WallTime.text(report.begin)
    let since = report.isOlder == true ? "since before \(time)" : "from \(time) on"
    var lines = ["\(report.threadName) (\(report.thread)) \(verb) \(lasted), \(since)"]
    if !report.isBacklog {
      lines.append("  in      \(hang.kind ?? "?")  \(hang.code?.text ?? "?")")
      if let posted = hang.posted, posted != hang.code { lines.append("  posted  \(posted.text)") }
    }
    lines.append("  was     \(was(report))")
    for site in hang.sites { lines.append("  waits   \(site.count) × \(site.place?.text ?? "?")") }
    for (index, place) in hang.stack.enumerated() {
      lines.append("  \(index == 0 ? "at    " : "      ")  \(place.text)")
    }
    if hang.stack.contains(where: { !$0.isProved }) {
      lines.append("          (? not proved: the place of its frame had to be guessed)")
    }
    if let problem = report.stackProblem { lines.append("  stack   is not complete: \(problem)") }
    return lines
  }

  /// Describes the state of the thread, without the shares of its time.
  static func does(_ report: HangReport) -> String {
    var text = report.processor.rawValue
    if let call = report.blockedIn { text += " in \(call.call)(\(call.on ?? ""))" }
    if let thread = report.waitsForName {
      text += ", waits for \(report.waitsFor == report.thread ? "itself" : thread)"
    }
    return text
  }

  static func was(_ report: HangReport) -> String {
    var text = does(report)
    if let shares = report.shares {
      let percents = [("on-cpu", shares.onCPU), ("runnable", shares.runnable), ("blocked", shares.blocked)]
      text += " (" + percents.map { "\($0.0) \(Int(($0.1 * 100).rounded())) %" }.joined(separator: ", ") + ")"
    }
    return text
  }
}

/// Records interrupting signals, so that a command can print its results and reset the level.
struct Interruption: ~Copyable {
  init() { crlt_interruption_begin() }

  var hasCome: Bool { crlt_interruption_has_come() != 0 }

  func end() { crlt_interruption_end() }
}
