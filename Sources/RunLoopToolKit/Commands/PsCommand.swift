// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC

/// `runloop ps`: the loops of processes, and what they are doing.
struct PsCommand: ObservingCommand {
  static let name = "ps"
  static let usage = """
    usage: runloop ps [PID] [--thread NAME] [--json]

    Shows the run loops of a process, or of all processes of the user: the thread, the mode, whether the
    loop sleeps, what it calls and since when, and how many blocks wait. A loop is hung if it has been in
    one call-out for 250 ms, and the process is not stopped. If a busy loop does not say what it calls, as the process records nothing,
    it is let record for a quarter of a second.

    DEPTH is the number of runs that are nested, QUEUE that of the blocks and jobs that wait, and WAITS
    says how often the loop has gone to sleep since it was made.

      --thread NAME  only the loop of the thread of that name
      --json         prints {"pid", "level", "loops": [{"tid", "thread", "mode", "state", "depth",
                     "queued", "callOut"}], "unseen"}, the last the number of loops without room, and without PID {"processes": [those]}; "since" of a call-out
                     is nanoseconds of CLOCK_MONOTONIC, and of one whose beginning nobody has noted, as the
                     level was watch, when it was first seen

    Exit status: 0, 1 if there is nothing to be seen, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(values: ["--thread"])

  private let process: Int32?
  private let thread: String?
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    let word = arguments.words.first
    process = word.flatMap { Int32($0) }
    thread = arguments.values["--thread"]
    isJSON = arguments.isJSON
    if let word, process ?? 0 <= 0 { throw .init(messages: ["\"\(word)\" is no number of a process"]) }
    if arguments.words.count > 1 || arguments.rest != nil { throw .init(messages: ["name one process, or none"]) }
  }

  private struct ProcessStatus {
    let number: Int32
    let level: String
    let loops: [LoopStatus]
    /// How many loops found no room in the records.
    let lost: UInt64
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    if let process {
      let status = try look(at: process)
      if isJSON { output.print(json(status).line) } else { show([status], output) }
      return CommandStatus.success.rawValue
    }
    var found: [ProcessStatus] = []
    for number in PsCommand.processes() {
      // What ends meanwhile, or is not the user's, is not there.
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

  /// The processes that are alive and have left records where this user's are.
  static func processes() -> [Int32] {
    var numbers: Set<Int32> = []
    for directory in RecordDirectory.own {
      for (number, start) in RecordDirectory.processes(in: directory) where TargetProcess.start(of: number) == start {
        numbers.insert(number)
      }
    }
    return numbers.sorted()
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
    ])
  }

  private func json(_ loop: LoopStatus) -> JSON {
    let callOut = loop.callOut.map { callOut in
      JSON.object([
        ("kind", .text(callOut.kind)), ("code", CodePlace.json(callOut.code)),
        ("since", .int(Int(callOut.since))),
      ])
    }
    return .object([
      ("tid", .int(Int(loop.thread))), ("thread", .text(loop.name)), ("mode", .optional(loop.mode)),
      ("state", .text(loop.state.rawValue)), ("depth", .int(loop.depth)), ("queued", .int(loop.queued)),
      ("callOut", callOut ?? .null),
    ])
  }

  private func show(_ processes: [ProcessStatus], _ output: Output) {
    var rows = [["PID", "TID", "THREAD", "STATE", "MODE", "DEPTH", "QUEUE", "WAITS", "CALL-OUT"]]
    for process in processes {
      // What hangs is what is looked for.
      for loop in process.loops.filter({ $0.state == .hung }) + process.loops.filter({ $0.state != .hung }) {
        var state = loop.isStopped ? "stopped" : loop.state.rawValue
        if loop.state == .hung {
          let since = loop.callOut.map { callOut in
            (callOut.isSeenLater ? " > " : " ") + Text.duration(crl_monotonic_nanoseconds() - callOut.since)
          }
          state = "HUNG\(since ?? "")"
        }
        rows.append([
          "\(process.number)", "\(loop.thread)", loop.name, state, loop.mode.map(PsCommand.shortened) ?? "–",
          "\(loop.depth)", "\(loop.queued)", "\(loop.waits)",
          loop.callOut.map { "\($0.kind)  \($0.code?.text ?? "")" } ?? "–",
        ])
      }
    }
    for line in Text.table(rows, rightAligned: [0, 1, 5, 6, 7]) { output.print(line) }
    for process in processes where process.lost > 0 {
      output.print("Process \(process.number): \(process.lost) loops found no room in its records, and are not shown.")
    }
  }

  private static func shortened(_ mode: String) -> String {
    mode == "kCFRunLoopDefaultMode" ? "default" : mode
  }
}
