// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// `runloop postmortem`: shows the last call-outs of a process that has ended.
struct PostmortemCommand: ObservingCommand {
  static let name = "postmortem"
  static let usage = """
    usage: runloop postmortem --pid PID | FILE [--thread NAME] [--last COUNT] [--json]

    Shows what the run loops of a process called before it was killed, the newest first. The process
    recorded: RUNLOOP_INSTRUMENTS was record, or it was run by "runloop record", or it held the level.

      --pid PID      a process that is gone; its record is in $RUNLOOP_DIR, or else where records are
      FILE           a record that was kept
      --thread NAME  only the thread of that name
      --last COUNT   so many call-outs of each thread; 20 by default, all with --json
      --json         prints {"threads": [{"tid", "thread", "last": [{"kind", "begin", "end", "code",
                     "posted"}], "lost", "torn"}]}; times are nanoseconds of CLOCK_MONOTONIC

    Exit status: 0, 1 if there is no record to read, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(values: ["--pid", "--thread", "--last"])

  private let process: Int32?
  private let path: String?
  private let thread: String?
  private let last: Int?
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    var mistakes: [String] = []
    let number = arguments.values["--pid"]
    process = number.flatMap { Int32($0) }
    if let number, process ?? 0 <= 0 { mistakes.append("\"\(number)\" is no number of a process") }
    path = arguments.words.first
    if (number == nil) == (path == nil) || arguments.words.count > 1 || arguments.rest != nil {
      mistakes.append("name one process with --pid, or one file")
    }
    thread = arguments.values["--thread"]
    let count = arguments.values["--last"]
    last = count.flatMap { Int($0) }
    if let count, last ?? 0 <= 0 { mistakes.append("\"\(count)\" is no count of call-outs") }
    isJSON = arguments.isJSON
    if !mistakes.isEmpty { throw Arguments.Mistakes(messages: mistakes) }
  }

  /// The records of one thread.
  private struct Thread {
    let slot: Int
    let number: Int32
    let name: String
    let records: [crl_record]
    let lost: Int
    let torn: Int
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    let file: RecordFile
    if let process { file = try RecordDirectory.openDead(process) } else { file = try RecordFile(path: path ?? "") }
    let threads = threads(of: file)
    let names = RecordNames(file)
    names.prepare(threads.flatMap { thread in thread.records.map { (thread.slot, $0) } })
    let clock = file.clock
    if isJSON {
      output.print(JSON.object([("threads", .list(threads.map { json($0, names, clock) }))]).line)
    } else {
      for thread in threads { show(thread, names, clock, output) }
      if threads.isEmpty { output.print("Nothing was recorded.") }
    }
    return CommandStatus.success.rawValue
  }

  private func threads(of file: RecordFile) -> [Thread] {
    var threads: [Thread] = []
    for slot in 0..<min(file.faceCount, Int(CRL_RINGS)) {
      let face = file.face(slot)
      guard face.generation > 0, face.thread != 0 else { continue }
      let name = file.threadName(slot) { _ in nil }
      guard thread == nil || thread == name else { continue }
      let (records, torn) = file.records(slot)
      guard !records.isEmpty || torn > 0 else { continue }
      let shown = last ?? (isJSON ? records.count : 20)
      threads.append(
        Thread(
          slot: slot, number: face.thread, name: name, records: Array(records.prefix(shown)),
          lost: max(0, Int(face.number) - records.count), torn: torn))
    }
    return threads
  }

  private func json(_ thread: Thread, _ names: RecordNames, _ clock: RecordClock) -> JSON {
    let entries = thread.records.map { record in
      JSON.object([
        ("kind", .text(KindName.of(record.kind))), ("begin", .int(Int(clock.nanoseconds(record.begin)))),
        ("end", record.end == 0 ? .null : .int(Int(clock.nanoseconds(record.end)))),
        ("code", CodePlace.json(names.code(record, thread.slot))),
        ("posted", CodePlace.json(names.posted(record, thread.slot))),
      ])
    }
    return .object([
      ("tid", .int(Int(thread.number))), ("thread", .text(thread.name)), ("last", .list(entries)),
      ("lost", .int(thread.lost)), ("torn", .int(thread.torn)),
    ])
  }

  private func show(_ thread: Thread, _ names: RecordNames, _ clock: RecordClock, _ output: Output) {
    output.print("\(thread.name) (\(thread.number)): the newest first; \(thread.lost) earlier ones are lost")
    guard let newest = thread.records.first else { return }
    let end = clock.nanoseconds(newest.end == 0 ? newest.begin : newest.end)
    var rows = [["BEFORE", "TOOK", "KIND", "CODE", "POSTED FROM"]]
    for record in thread.records {
      let begin = clock.nanoseconds(record.begin)
      let took = record.end == 0 ? "not over" : Text.duration(clock.nanoseconds(record.end) - begin)
      rows.append([
        Text.duration(end - begin), took, KindName.of(record.kind), names.code(record, thread.slot)?.text ?? "–",
        names.posted(record, thread.slot)?.text ?? "–",
      ])
    }
    for line in Text.table(rows, rightAligned: [0, 1]) { output.print("  " + line) }
  }
}
