// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// A command of the tool.
package struct Subcommand: Sendable {
  /// The name that selects the command: `runloop NAME`.
  package let name: String
  /// The description in the list of commands.
  package let abstract: String
  /// The options that the command accepts.
  let options: Arguments.Options
  /// Runs the command with the arguments after its name, and returns the exit status.
  package let run: @Sendable (_ arguments: [String], _ output: Output) -> Int32

  init(
    name: String, abstract: String, options: Arguments.Options = .init(),
    run: @escaping @Sendable (_ arguments: [String], _ output: Output) -> Int32
  ) {
    self.name = name
    self.abstract = abstract
    self.options = options
    self.run = run
  }
}

/// The command-line tool `runloop`.
package enum RunLoopCommand {
  /// The version of the tool and of the records that it reads.
  static let version = "runloop 0.1.0, records of layout \(CRL_LAYOUT_VERSION)"

  static func usage(_ commands: [Subcommand]) -> String {
    var lines = ["usage: runloop <command> [arguments]", ""]
    for command in commands {
      let space = String(repeating: " ", count: max(1, 12 - command.name.count))
      lines.append("  \(command.name)\(space)\(command.abstract)")
    }
    let more = [
      "", "\"runloop <command> --help\" says more; \"runloop --version\" says which this is. With",
      "\"--symbols DIR\" a command takes the names of stripped or replaced programs from the files of their builds there.",
    ]
    return (lines + more).joined(separator: "\n")
  }

  /// Runs the tool.
  ///
  /// - Parameters:
  ///   - arguments: The arguments after the tool's name.
  ///   - commands: The available commands.
  ///   - output: The output of the command.
  /// - Returns: The exit status.
  package static func status(
    of arguments: [String], commands: [Subcommand] = ObservingCommands.all, output: Output = .standard
  ) -> Int32 {
    switch arguments.first {
    case "help" where arguments.count > 1:
      return status(of: [arguments[1], "--help"], commands: commands, output: output)
    case "--version":
      output.print(version)
      return CommandStatus.success.rawValue
    case nil, "--help", "-h", "help":
      output.print(usage(commands))
      return CommandStatus.success.rawValue
    case let name?:
      if let command = commands.first(where: { $0.name == name }) {
        return command.run(Array(arguments.dropFirst()), output)
      }
      let kind = name.hasPrefix("-") ? "option" : "command"
      let known = commands.map(\.name) + ["--help", "--version"]
      output.complain("runloop: unknown \(kind) \(name)\(suggestion(for: name, among: known))")
      output.complain(usage(commands))
      return CommandStatus.usageError.rawValue
    }
  }
}
