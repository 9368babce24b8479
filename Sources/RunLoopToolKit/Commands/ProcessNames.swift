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

  /// The process that a word means, by its number or by its program's name.
  static func one(_ word: String) throws(Arguments.Mistakes) -> Int32 {
    if let number = Int32(word), number > 0 { return number }
    let found = Int(word) == nil ? numbers(named: word) : []
    if let only = found.first, found.count == 1 { return only }
    let why =
      found.isEmpty
      ? "is no number of a process, and no process with a run loop has that name"
      : "is the name of several processes: \(found.map { "\($0)" }.joined(separator: ", "))"
    throw Arguments.Mistakes(messages: ["\"\(word)\" \(why)"])
  }
}

extension Arguments {
  /// The one process that is named.
  func process() throws(Mistakes) -> Int32 {
    guard words.count == 1, rest == nil else { throw Mistakes(messages: ["name one process"]) }
    return try ProcessNames.one(words[0])
  }
}
