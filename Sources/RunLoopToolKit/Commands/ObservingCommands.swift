// SPDX-License-Identifier: Apache-2.0

/// The commands that observe processes or read their records.
package enum ObservingCommands {
  package static var all: [Subcommand] {
    [
      make(PsCommand.self, "shows the run loops of processes, and what they are doing"),
      make(DoctorCommand.self, "says what is wrong with a process, and what to look at next"),
      make(HangsCommand.self, "waits for call-outs that last too long, and shows where they hang"),
      make(RecordCommand.self, "runs a program and records what its loops call"),
      make(WhyAliveCommand.self, "shows what keeps the run loops of a process from ending"),
      make(DumpCommand.self, "prints the run loops of a process with all that is in them"),
      make(PostmortemCommand.self, "shows what the loops of a process called before it was killed"),
      make(TopCommand.self, "shows the loops of a process live"),
      make(TraceCommand.self, "writes what the loops of a process do as a trace or as a page"),
      make(ManualCommand.self, "prints a page of the manual, or completions for a shell"),
    ]
  }

  private static func make(_ command: (some ObservingCommand).Type, _ abstract: String) -> Subcommand {
    Subcommand(name: command.name, abstract: abstract, options: command.options) { run(command, $0, $1) }
  }

  /// Parses the arguments, runs the command, and converts errors to a message and an exit status.
  private static func run(_ command: (some ObservingCommand).Type, _ arguments: [String], _ output: Output) -> Int32 {
    do throws(Arguments.Mistakes) {
      let arguments = try Arguments(arguments, command.options)
      if arguments.wantsHelp {
        output.print(command.usage)
        return CommandStatus.success.rawValue
      }
      let request = try command.init(arguments)
      // Escapes each line separately. JSON documents contain no control characters, so they are not changed.
      let output = Output(
        print: { [output] in output.print(ForeignText.shown($0)) },
        complain: { [output] in output.complain(ForeignText.shown($0)) })
      let result = ExternalSymbolizer.$directory.withValue(arguments.values[Arguments.symbols]) {
        () -> Result<Int32, RecordError> in
        do throws(RecordError) { return .success(try request.run(output)) } catch { return .failure(error) }
      }
      do throws(RecordError) {
        return try result.get()
      } catch {
        output.complain("runloop \(command.name): \(error)")
        return CommandStatus.failure.rawValue
      }
    } catch {
      for message in error.messages { output.complain(ForeignText.shown("runloop \(command.name): \(message)")) }
      output.complain("\"runloop \(command.name) --help\" says more.")
      return CommandStatus.usageError.rawValue
    }
  }
}

/// A command that observes processes.
protocol ObservingCommand: SendableMetatype {
  static var name: String { get }
  static var usage: String { get }
  static var options: Arguments.Options { get }

  init(_ arguments: Arguments) throws(Arguments.Mistakes)
  /// Runs the command and returns the exit status.
  func run(_ output: Output) throws(RecordError) -> Int32
}

extension CodePlace {
  /// The place in JSON.
  static func json(_ place: CodePlace?) -> JSON {
    guard let place else { return .null }
    return .object([
      ("function", .text(place.function)), ("file", .optional(place.file)), ("line", .optional(place.line)),
    ])
  }

  /// The place as text: the function, and the last component of the file's path.
  var text: String {
    guard let file, let line else { return function }
    return "\(function) \(file.split(separator: "/").last.map(String.init) ?? file):\(line)"
  }
}

/// The names of the kinds in records.
enum KindName {
  private static let names = [
    "", "block", "perform", "job", "timer", "source0", "source1", "observer", "mainQueue", "schedule", "cancel", "host",
    "sleep", "run",
  ]

  static func of(_ kind: UInt8) -> String { Int(kind) < names.count ? names[Int(kind)] : "unknown" }
}
