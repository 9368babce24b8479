// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// Processes by the names of their programs.
enum ProcessNames {
  /// The processes of this user that have run loops and a program of a name, as the kernel has it.
  static func numbers(named name: String) -> [Int32] {
    PsCommand.processes().filter { number in
      let own = readWhole("/proc/\(number)/comm").map { String($0.prefix { $0 != "\n" }) }
      // The kernel keeps fifteen letters of a name.
      return own == name || own.map { $0.utf8.count == 15 && name.hasPrefix($0) } ?? false
    }
  }

  /// The processes that a word means, by the number of one or by their program's name: one at least.
  static func all(_ word: String) throws(Arguments.Mistakes) -> [Int32] {
    if let number = Int32(word), number > 0 { return [number] }
    let found = Int(word) == nil ? numbers(named: word) : []
    guard found.isEmpty else { return found }
    throw Arguments.Mistakes(
      messages: ["\"\(word)\" is no number of a process, and no process with a run loop has that name"])
  }
}

extension Arguments {
  /// What stands for the one process that is named; nil: none, or several are.
  var word: String? { words.count == 1 && rest == nil ? words[0] : nil }

  /// The one process that is named.
  func process() throws(Mistakes) -> Int32 {
    guard let word else { throw Mistakes(messages: ["name one process"]) }
    let found = try ProcessNames.all(word)
    if found.count == 1 { return found[0] }
    let list = found.map { "\($0)" }.joined(separator: ", ")
    throw Mistakes(messages: ["\"\(word)\" is the name of several processes: \(list)"])
  }
}
