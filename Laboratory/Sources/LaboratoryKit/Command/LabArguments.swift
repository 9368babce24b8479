// SPDX-License-Identifier: Apache-2.0

/// The parsed arguments of the laboratory.
struct LabArguments: Sendable, Hashable {
  /// The ids of experiments, each once, in the order given, or none for all.
  var ids: [String] = []
  /// The letters of the groups that were requested as a whole.
  var groups: [String] = []
  var lists = false
  var isVerbose = false
  var isJSON = false
  var wantsHelp = false
}

/// Invalid arguments.
struct UsageError: Error, Hashable {
  /// The error messages, one for each mistake.
  var messages: [String]
}

extension LabArguments {
  private static let options = ["--list", "--verbose", "--json", "--help"]

  /// Parses the arguments of the program.
  ///
  /// - Parameters:
  ///   - arguments: Options, ids of experiments, and letters of groups, in upper or lower case.
  ///   - known: The existing ids.
  /// - Throws: A ``UsageError`` that lists all mistakes.
  init(_ arguments: [String], known: [String]) throws(UsageError) {
    var mistakes: [String] = []
    for argument in arguments {
      switch argument {
      case "--list": lists = true
      case "--verbose": isVerbose = true
      case "--json": isJSON = true
      case "--help", "-h": wantsHelp = true
      case _ where argument.hasPrefix("-"):
        mistakes.append("unknown option \(argument)\(suggestion(for: argument, among: Self.options))")
      default:
        let id = argument.uppercased()
        let group = known.filter { $0.first.map(String.init) == id }
        if !group.isEmpty { groups.append(id) }
        if group.isEmpty, !known.contains(id) {
          mistakes.append("no experiment \"\(argument)\"\(suggestion(for: id, among: known))")
        }
        for id in group.isEmpty ? [id] : group where known.contains(id) && !ids.contains(id) { ids.append(id) }
      }
    }
    if lists, isJSON || isVerbose { mistakes.append("--list goes with neither --json nor --verbose") }
    if !mistakes.isEmpty { throw UsageError(messages: mistakes) }
  }
}
