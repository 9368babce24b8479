// SPDX-License-Identifier: Apache-2.0

/// The parsed arguments of a command.
struct Arguments: Sendable {
  /// The options that a command accepts.
  struct Options: Sendable {
    /// Options with a value.
    var values: [String] = []
    /// Options without a value.
    var flags: [String] = []
  }

  /// Errors in the arguments, one sentence each.
  struct Mistakes: Error {
    let messages: [String]
  }

  /// An option of all commands: the directory with the symbols of stripped or replaced programs.
  static let symbols = "--symbols"

  private(set) var values: [String: String] = [:]
  private(set) var flags: Set<String> = []
  /// The positional arguments.
  private(set) var words: [String] = []
  /// The arguments after `--`, or nil without it.
  private(set) var rest: [String]?

  init(_ arguments: [String], _ options: Options) throws(Mistakes) {
    var mistakes: [String] = []
    var index = 0
    while index < arguments.count {
      let argument = arguments[index]
      index += 1
      if argument == "--" {
        rest = Array(arguments[index...])
        break
      } else if options.values.contains(argument) || argument == Arguments.symbols {
        if index < arguments.count {
          values[argument] = arguments[index]
          index += 1
        } else {
          mistakes.append("\(argument) needs a value")
        }
      } else if options.flags.contains(argument) || argument == "--json" || argument == "--help" || argument == "-h" {
        flags.insert(argument == "-h" ? "--help" : argument)
      } else if argument.hasPrefix("-") {
        let known = options.values + options.flags + ["--json", "--help", Arguments.symbols]
        mistakes.append("unknown option \(argument)\(suggestion(for: argument, among: known))")
      } else {
        words.append(argument)
      }
    }
    if !mistakes.isEmpty { throw Mistakes(messages: mistakes) }
  }

  var isJSON: Bool { flags.contains("--json") }
  var wantsHelp: Bool { flags.contains("--help") }
}
