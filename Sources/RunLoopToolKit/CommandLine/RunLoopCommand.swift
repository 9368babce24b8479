// SPDX-License-Identifier: Apache-2.0

/// A command of the tool beside the laboratory.
package struct Subcommand: Sendable {
  /// What stands behind `runloop`.
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
  static func usage(_ others: [Subcommand]) -> String {
    var lines = ["usage: runloop <command> [arguments]", ""]
    let lab = ("lab", "puts the claims of five articles to the test on the real run loop")
    for (name, abstract) in others.map({ ($0.name, $0.abstract) }) + [lab] {
      lines.append("  \(name)\(String(repeating: " ", count: max(1, 12 - name.count)))\(abstract)")
    }
    return (lines + ["", "\"runloop <command> --help\" says more."]).joined(separator: "\n")
  }

  /// Runs the tool with no command but the laboratory.
  package static func run(_ arguments: [String], output: Output = .standard) -> CommandStatus {
    CommandStatus(rawValue: status(of: arguments, others: [], output: output)) ?? .failure
  }

  /// Runs the tool.
  ///
  /// - Parameters:
  ///   - arguments: What follows the tool's name.
  ///   - others: The commands beside the laboratory.
  ///   - output: Where to write.
  /// - Returns: The status to exit with.
  package static func status(of arguments: [String], others: [Subcommand], output: Output = .standard) -> Int32 {
    let usage = usage(others)
    switch arguments.first {
    case nil, "--help", "-h", "help":
      output.print(usage)
      return CommandStatus.success.rawValue
    case "lab":
      return LabCommand(output: output).run(Array(arguments.dropFirst())).rawValue
    case let name?:
      if let other = others.first(where: { $0.name == name }) { return other.run(Array(arguments.dropFirst()), output) }
      let kind = name.hasPrefix("-") ? "option" : "command"
      let known = others.map(\.name) + ["lab", "--help"]
      output.complain("runloop: unknown \(kind) \(name)\(suggestion(for: name, among: known))")
      output.complain(usage)
      return CommandStatus.usageError.rawValue
    }
  }
}
