// SPDX-License-Identifier: Apache-2.0

/// The command-line tool `runloop`.
package enum RunLoopCommand {
  static let usage = """
    usage: runloop <command> [arguments]

      lab     puts the claims of five articles to the test on the real run loop

    "runloop <command> --help" says more.
    """

  /// Runs the tool.
  ///
  /// - Parameters:
  ///   - arguments: What follows the tool's name.
  ///   - output: Where to write.
  /// - Returns: The status to exit with.
  package static func run(_ arguments: [String], output: Output = .standard) -> CommandStatus {
    switch arguments.first {
    case nil, "--help", "-h", "help":
      output.print(usage)
      return .success
    case "lab":
      return LabCommand(output: output).run(Array(arguments.dropFirst()))
    case let other?:
      let kind = other.hasPrefix("-") ? "option" : "command"
      output.complain("runloop: unknown \(kind) \(other)\(suggestion(for: other, among: ["lab", "--help"]))")
      output.complain(usage)
      return .usageError
    }
  }
}
