// SPDX-License-Identifier: Apache-2.0

/// `runloop why-alive`: what keeps the run loops of a process from ending.
struct WhyAliveCommand: ObservingCommand {
  static let name = "why-alive"
  static let usage = """
    usage: runloop why-alive PID [--thread NAME] [--json]

    Shows what keeps the run of each run loop of a process from ending: the items of its mode, with the
    places where they were added, and the blocks that wait. The process answers by a thread of its own: it
    has RunLoopInstruments or RunLoopKit, and RUNLOOP_INSTRUMENTS was watch or record when it was started,
    or it has called Instruments.listen(). The places of what was added at the level off are not known.

      --thread NAME  only the loop of the thread of that name
      --json         prints {"loops": [{"tid", "thread", "mode", "running", "reasons": [{"kind", "modes",
                     "code", "added", "detail"}]}]}; the kinds are timer, source0, port, descriptor, signal,
                     child, listener, files, mainQueue, block, perform, host and resident

    Exit status: 0, 1 if there is no answer, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(values: ["--thread"])

  private let process: Int32
  private let thread: String?
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    process = try arguments.process()
    thread = arguments.values["--thread"]
    isJSON = arguments.isJSON
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    let target = try TargetProcess(process)
    let loops = try LoopAnswer.read("reasons", target, thread: thread)
    let names = ReasonNames(
      Symbolizer(target.loadedImages, source: ExternalSymbolizer(of: target.user)), loops.flatMap(\.reasons))
    if isJSON {
      output.print(JSON.object([("loops", .list(loops.map { json($0, names) }))]).line)
    } else {
      for loop in loops { show(loop, names, output) }
      if loops.isEmpty { output.print("No thread of process \(process) has a run loop.") }
    }
    return CommandStatus.success.rawValue
  }

  private func json(_ loop: LoopAnswer, _ names: ReasonNames) -> JSON {
    let reasons = loop.reasons.map { reason in
      JSON.object([
        ("kind", .text(reason.kind)), ("modes", .list(reason.modes.map { .text($0) })),
        ("code", CodePlace.json(names.code(reason))), ("added", CodePlace.json(names.added(reason))),
        ("detail", .text(reason.detail)),
      ])
    }
    return .object([
      ("tid", .int(loop.thread)), ("thread", .text(loop.name)), ("mode", .optional(loop.mode)),
      ("running", .bool(loop.isRunning)), ("reasons", .list(reasons)),
    ])
  }

  private func show(_ loop: LoopAnswer, _ names: ReasonNames, _ output: Output) {
    guard loop.isRunning, let mode = loop.mode else {
      return output.print("\(loop.name) (\(loop.thread)) runs no mode; nothing keeps it")
    }
    let title = "\(loop.name) (\(loop.thread)) runs \(mode), depth \(loop.depth); "
    output.print(title + (loop.reasons.isEmpty ? "nothing keeps it: it ends after this pass" : "it stays because of"))
    let rows = loop.reasons.map { ["", $0.kind, $0.detail, (names.added($0) ?? names.code($0))?.text ?? "–"] }
    for line in Text.table(rows) { output.print(line) }
  }
}

/// Names what stands in reasons.
struct ReasonNames {
  private let symbolizer: Symbolizer

  init(_ symbolizer: Symbolizer, _ reasons: [LoopAnswer.Reason]) {
    self.symbolizer = symbolizer
    symbolizer.prepare(functions: reasons.map(\.code).filter { $0 != 0 }, sites: [])
    symbolizer.prepare(callers: reasons.flatMap(\.added))
  }

  /// The user's function; where it is not known, the place stands for it.
  func code(_ reason: LoopAnswer.Reason) -> CodePlace? {
    symbolizer.place(.function, reason.code) ?? added(reason)
  }

  /// Where the user has added it.
  func added(_ reason: LoopAnswer.Reason) -> CodePlace? { symbolizer.caller(reason.added) }
}

extension Arguments {
  /// The one process that is named.
  func process() throws(Mistakes) -> Int32 {
    guard words.count == 1, rest == nil else { throw Mistakes(messages: ["name one process"]) }
    guard let number = Int32(words[0]), number > 0 else {
      throw Mistakes(messages: ["\"\(words[0])\" is no number of a process"])
    }
    return number
  }
}
