// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC

/// `runloop ps`: shows the loops of processes and what they are doing.
struct PsCommand: ObservingCommand {
  static let name = "ps"
  static let usage = """
    usage: runloop ps [PID|NAME] [--thread NAME] [--json]

    Shows the run loops of a process, or of all processes of the user, and of all users for root: the
    thread, the mode, whether the loop sleeps, what it calls and since when, and how many blocks wait. A
    loop that is busy is looked at until it has gone on, while the process records; it is hung if it has
    been seen in one call-out for 250 ms, as "runloop hangs" says it. What hangs is shown first.

    HOST, if there is one, is the library in whose loop the loop is a guest, or "program" for a host that it
    does not know. DEPTH is the number of runs that are nested, QUEUE that of the blocks and jobs that wait, and WAITS
    says how often the loop has gone to sleep since it was made.

      --thread NAME  only the loop of the thread of that name
      --json         prints {"pid", "level", "loops": [{"tid", "thread", "mode", "state", "depth",
                     "queued", "callOut": {"kind", "code", "since", "sinceTime"}, "host"}], "unseen", "time"},
                     and without PID {"processes": [those]}; "unseen" is the number of loops without room;
                     "since" of a call-out is nanoseconds of CLOCK_MONOTONIC, "sinceTime" the same of the
                     wall clock, and of one whose beginning nobody has noted both are when it was first seen

    Exit status: 0, 1 if there is nothing to be seen, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(values: ["--thread"])

  private let process: Int32?
  private let thread: String?
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    thread = arguments.values["--thread"]
    isJSON = arguments.isJSON
    if arguments.words.count > 1 || arguments.rest != nil { throw .init(messages: ["name one process, or none"]) }
    process = arguments.words.isEmpty ? nil : try arguments.process()
  }

  private struct ProcessStatus {
    let number: Int32
    let level: String
    let loops: [LoopStatus]
    /// The number of loops that did not fit into the records.
    let lost: UInt64
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    if let process {
      let status = try look(at: process)
      if isJSON { output.print(json(status).line) } else { show([status], output) }
      return CommandStatus.success.rawValue
    }
    var found: [ProcessStatus] = []
    for number in TargetProcess.all() {
      // Skips processes that end meanwhile or belong to another user.
      if let status = try? look(at: number) { found.append(status) }
    }
    if isJSON {
      output.print(JSON.object([("processes", .list(found.map { json($0) }))]).line)
    } else if found.isEmpty {
      throw RecordError("no process of this user has a run loop of RunLoopKit")
    } else {
      show(found, output)
    }
    return CommandStatus.success.rawValue
  }

  private func look(at number: Int32) throws(RecordError) -> ProcessStatus {
    let target = try TargetProcess(number)
    let file = try target.openRecords()
    let level = file.header.level
    if let thread { try LoopReader.require(thread, in: file, of: target) }
    let loops = try LoopReader(target: target, file: file).read().filter { thread == nil || $0.name == thread }
    let names = ["off", "watch", "record"]
    return ProcessStatus(number: number, level: names[min(Int(level), 2)], loops: loops, lost: file.header.lost_loops)
  }

  private func json(_ status: ProcessStatus) -> JSON {
    .object([
      ("pid", .int(Int(status.number))), ("level", .text(status.level)),
      ("loops", .list(status.loops.map { json($0) })), ("unseen", .int(Int(clamping: status.lost))),
      ("time", .text(WallTime.json(crl_monotonic_nanoseconds()))),
    ])
  }

  private func json(_ loop: LoopStatus) -> JSON {
    let callOut = loop.callOut.map { callOut in
      JSON.object([
        ("kind", .text(callOut.kind)), ("code", CodePlace.json(callOut.code)),
        ("since", .int(Int(callOut.since))), ("sinceTime", .text(WallTime.json(callOut.since))),
      ])
    }
    return .object([
      ("tid", .int(Int(loop.thread))), ("thread", .text(loop.name)), ("mode", .optional(loop.mode)),
      ("state", .text(loop.state.rawValue)), ("depth", .int(loop.depth)), ("queued", .int(loop.queued)),
      ("callOut", callOut ?? .null), ("host", .optional(loop.host)),
    ])
  }

  private func show(_ processes: [ProcessStatus], _ output: Output) {
    let loops = processes.flatMap { process in process.loops.map { (process.number, $0) } }
    // Hangs come first, because they are the usual reason for running the command.
    let ordered = loops.filter { $0.1.state == .hung } + loops.filter { $0.1.state != .hung }
    let hasHost = loops.contains { $0.1.host != nil }
    let titles =
      ["PID", "TID", "THREAD", "STATE", "MODE", "DEPTH", "QUEUE", "WAITS"] + (hasHost ? ["HOST"] : [])
      + ["SINCE", "CALL-OUT"]
    let rows = ordered.map { number, loop in
      var row = ["\(number)", "\(loop.thread)", loop.name, PsCommand.state(loop)]
      row += [loop.mode.map(PsCommand.shortened) ?? "–", "\(loop.depth)", "\(loop.queued)", "\(loop.waits)"]
      if hasHost { row.append(loop.host ?? "–") }
      row += [loop.callOut.map { WallTime.text($0.since) } ?? "–", PsCommand.callOut(loop)]
      return row
    }
    for line in Text.table([titles] + rows, rightAligned: [0, 1, 5, 6, 7]) { output.print(line) }
    for process in processes where process.lost > 0 {
      output.print("Process \(process.number): \(process.lost) loops found no room in its records, and are not shown.")
    }
  }

  private static func state(_ loop: LoopStatus) -> String {
    guard let hang = loop.hang else { return loop.isStopped ? "stopped" : loop.state.rawValue }
    return "HUNG \(hang.isOlder ? "> " : "")\(Text.duration(crl_monotonic_nanoseconds() - hang.since))"
  }

  private static func callOut(_ loop: LoopStatus) -> String {
    let text = loop.callOut.map { "\($0.kind)  \($0.code?.text ?? "")" } ?? "–"
    return text + (loop.hang.map { "   \($0.was)" } ?? "")
  }

  private static func shortened(_ mode: String) -> String {
    mode == "kCFRunLoopDefaultMode" ? "default" : mode
  }
}
