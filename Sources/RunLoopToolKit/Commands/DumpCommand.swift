// SPDX-License-Identifier: Apache-2.0

/// `runloop dump`: prints the contents of a process's run loops in Core Foundation's format.
struct DumpCommand: ObservingCommand {
  static let name = "dump"
  static let usage = """
    usage: runloop dump PID|NAME [--thread NAME] [--json]

    Prints each run loop of a process with its modes and all that is in them, in the shape of Core
    Foundation's description of a loop, with the user's function and line for each call-out, the thread,
    the depth of its runs and the blocks that wait. The process answers as for "runloop why-alive".

      --thread NAME  only the loop of the thread of that name
      --json         prints {"loops": [{"tid", "thread", "description"}]}

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
    let loops = try LoopAnswer.read("dump", target, thread: thread)
    let symbolizer = Symbolizer(target.loadedImages, source: ExternalSymbolizer(of: target.user))
    let described = loops.map { ($0, NamedDescription($0, symbolizer).text) }
    if isJSON {
      let entries = described.map { loop, text in
        JSON.object([("tid", .int(loop.thread)), ("thread", .text(loop.name)), ("description", .text(text))])
      }
      output.print(JSON.object([("loops", .list(entries))]).line)
    } else {
      for (_, text) in described {
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) { output.print(String(line)) }
      }
      if loops.isEmpty { output.print("No thread of process \(process) has a run loop.") }
    }
    return CommandStatus.success.rawValue
  }
}

/// A description of a loop in which symbols replace the addresses of call-outs.
struct NamedDescription {
  let text: String

  private static let mark = "callout = 0x"

  init(_ loop: LoopAnswer, _ symbolizer: Symbolizer) {
    let lines = loop.description.split(separator: "\n", omittingEmptySubsequences: false)
    let codes = lines.compactMap { NamedDescription.code(in: $0) }
    symbolizer.prepare(functions: codes, sites: [])
    symbolizer.prepare(callers: loop.places.values.flatMap { $0 })
    text = lines.map { NamedDescription.named($0, loop, symbolizer) }.joined(separator: "\n")
  }

  /// The address of a line's call-out.
  private static func code(in line: Substring) -> UInt64? {
    guard let start = line.firstRange(of: mark)?.upperBound else { return nil }
    return UInt64(line[start...].prefix { $0.isHexDigit }, radix: 16)
  }

  /// The address of the item that a line describes, which is the first address on the line.
  private static func item(in line: Substring) -> UInt64? {
    guard let start = line.firstRange(of: " 0x")?.upperBound else { return nil }
    return UInt64(line[start...].prefix { $0.isHexDigit }, radix: 16)
  }

  private static func named(_ line: Substring, _ loop: LoopAnswer, _ symbolizer: Symbolizer) -> String {
    guard let start = line.firstRange(of: "callout = ")?.upperBound, let brace = line[start...].lastIndex(of: "}")
    else {
      return String(line)
    }
    let added = item(in: line).flatMap { loop.places[$0] }.flatMap { symbolizer.caller($0) }
    let named = code(in: line).flatMap { symbolizer.place(.function, $0) } ?? added
    guard let named else { return String(line) }
    return "\(line[..<start])\(named.text)\(line[brace...])"
  }
}
