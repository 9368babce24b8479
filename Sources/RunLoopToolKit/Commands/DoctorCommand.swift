// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments

/// `runloop doctor`: diagnoses processes, and reports what this machine lacks for observing them.
struct DoctorCommand: ObservingCommand {
  static let name = "doctor"
  static let usage = """
    usage: runloop doctor [PID | NAME] [--for SECONDS] [--json]

    Looks at a process, at all of a program's name, or at all of the user, and says what is wrong: threads that wait
    for each other, hangs with those that they wait for, children that wait for their pipe to be read,
    descriptors that nobody reads, overload, backlogs that grow, and timers that become more. Each has what
    shows it and the next command. Then it says what this machine lacks for looking, and what is lost by it.

      --for SECONDS  how long to look at each process; 2 by default
      --json         prints {"processes": [{"pid", "ending", "loops", "unseen", "stopped", "agent", "endTime",
                     "findings": [{"kind", "thread", "title", "details", "next"}]}], "machine": [text]}; the kinds are
                     deadlock, hang, child-pipe, unread, overload, backlog, growth, unseen and stopped

    Exit status: 0, also if something is wrong, 1 if nothing can be looked at, 2 for arguments that make no
    sense.
    """
  static let options = Arguments.Options(values: ["--for"])

  /// The processes that were named, or nil for all processes of the user.
  private let named: [Int32]?
  private let seconds: Double
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    isJSON = arguments.isJSON
    let time = arguments.values["--for"]
    seconds = time.map { Double($0) ?? 0 } ?? 2
    var mistakes: [String] = []
    if let time, !(seconds > 0 && seconds <= 86_400) {
      mistakes.append("\"\(time)\" is no number of seconds between 0 and 86,400")
    }
    if arguments.words.count > 1 || arguments.rest != nil { mistakes.append("name one process, or none") }
    if !mistakes.isEmpty { throw .init(messages: mistakes) }
    named = try arguments.word.map { word throws(Arguments.Mistakes) in try ProcessNames.all(word) }
  }

  private struct Result {
    let look: DoctorLook
    let findings: [DoctorFinding]
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    var results: [Result] = []
    let numbers = try chosen()
    for number in numbers where results.last?.look.summary.ending != .interrupted {
      do throws(RecordError) {
        let look = try DoctorLook(TargetProcess(number))
        try look.look(for: Int64(seconds * 1e9))
        let result = Result(look: look, findings: Diagnosis(look).findings)
        results.append(result)
        if !isJSON { show(result, output) }
      } catch {
        // With several processes, one that ends or cannot be observed does not affect the others.
        if numbers.count == 1 { throw error }
        output.complain("runloop doctor: \(error)")
      }
    }
    if isJSON { output.print(json(results).line) } else { showMachine(results, output) }
    return (results.isEmpty ? CommandStatus.failure : .success).rawValue
  }

  private func chosen() throws(RecordError) -> [Int32] {
    if let named { return named }
    let all = TargetProcess.all()
    if all.isEmpty { throw RecordError("no process of this user has a run loop of RunLoopKit") }
    return all
  }

  private func show(_ result: Result, _ output: Output) {
    let (look, process) = (result.look, result.look.target.number)
    let span = Text.duration(Int64(look.seconds * 1e9))
    let end = WallTime.text(look.summary.end)
    output.print("process \(process), \(look.summary.loops) loops, looked at for \(span) until \(end)")
    for finding in result.findings { for line in finding.lines { output.print("  \(line)") } }
    if result.findings.isEmpty { output.print("  Nothing is wrong, as far as can be seen.") }
    if look.summary.ending == .ended { output.print("  The process has ended meanwhile.") }
    if look.summary.ending == .executed { output.print("  The process has become another program meanwhile.") }
  }

  private func showMachine(_ results: [Result], _ output: Output) {
    let without = results.map(\.look).filter {
      $0.kept == nil && $0.summary.ending == .time && $0.summary.stopped == 0
    }.map(\.target.number)
    var lines = MachineReport.lines
    if !without.isEmpty {
      lines.append(
        "process \(without.map { "\($0)" }.joined(separator: ", ")) has no agent that answers: what its loops hold, and "
          + "whether that grows, is not seen (it is built without RunLoopInstruments, or RUNLOOP_INSTRUMENTS is off)")
    }
    for look in results.map(\.look) {
      lines += look.summary.hidden.map { "process \(look.target.number): \($0)" }
    }
    guard !lines.isEmpty else { return }
    output.print("not seen")
    for line in lines { output.print("  \(line)") }
  }

  private func json(_ results: [Result]) -> JSON {
    let processes = results.map { result in
      JSON.object([
        ("pid", .int(Int(result.look.target.number))), ("ending", .text(result.look.summary.ending.rawValue)),
        ("loops", .int(result.look.summary.loops)), ("unseen", .int(result.look.summary.unseen)),
        ("stopped", .int(result.look.summary.stopped)),
        ("agent", .bool(result.look.kept != nil)), ("endTime", .text(WallTime.json(result.look.summary.end))),
        ("findings", .list(result.findings.map(\.json))),
      ])
    }
    return .object([("processes", .list(processes)), ("machine", .list(MachineReport.lines.map { .text($0) }))])
  }
}
