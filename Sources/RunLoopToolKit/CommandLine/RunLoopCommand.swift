// SPDX-License-Identifier: Apache-2.0

/// A command of the tool.
package struct Subcommand: Sendable {
  /// The argument that selects it: `runloop NAME`.
  package let name: String
  /// What it does, in the list of commands.
  package let abstract: String
  /// Runs it with the arguments that follow the name; returns the status to exit with.
  package let run: @Sendable (_ arguments: [String], _ output: Output) -> Int32

  package init(
    name: String, abstract: String, run: @escaping @Sendable (_ arguments: [String], _ output: Output) -> Int32
  ) {
    self.name = name
    self.abstract = abstract
    self.run = run
  }
}

/// The command-line tool `runloop`.
package enum RunLoopCommand {
  static func usage(_ commands: [Subcommand]) -> String {
    var lines = ["usage: runloop <command> [arguments]", ""]
    for command in commands {
      let space = String(repeating: " ", count: max(1, 12 - command.name.count))
      lines.append("  \(command.name)\(space)\(command.abstract)")
    }
    return (lines + ["", "\"runloop <command> --help\" says more."]).joined(separator: "\n")
  }

  /// Runs the tool.
  ///
  /// - Parameters:
  ///   - arguments: What follows the tool's name.
  ///   - commands: The commands that there are.
  ///   - output: Where to write.
  /// - Returns: The status to exit with.
  package static func status(
    of arguments: [String], commands: [Subcommand] = ObservingCommands.all, output: Output = .standard
  ) -> Int32 {
    switch arguments.first {
    case nil, "--help", "-h", "help":
      output.print(usage(commands))
      return CommandStatus.success.rawValue
    case let name?:
      if let command = commands.first(where: { $0.name == name }) {
        return command.run(Array(arguments.dropFirst()), output)
      }
      let kind = name.hasPrefix("-") ? "option" : "command"
      let known = commands.map(\.name) + ["--help"]
      output.complain("runloop: unknown \(kind) \(name)\(suggestion(for: name, among: known))")
      output.complain(usage(commands))
      return CommandStatus.usageError.rawValue
    }
  }
}
