// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// Lookup of processes by the names of their programs.
enum ProcessNames {
  /// Returns the processes that this user may observe, have run loops and a program with this name.
  static func numbers(named name: String) -> [Int32] {
    TargetProcess.all { number in
      let own = readWhole("/proc/\(number)/comm").map { String($0.prefix { $0 != "\n" }) }
      // The kernel truncates names to fifteen bytes.
      return own == name || own.map { $0.utf8.count == 15 && name.hasPrefix($0) } ?? false
    }
  }

  /// Returns the processes with an ID or program name; throws if there are none.
  static func all(_ word: String) throws(Arguments.Mistakes) -> [Int32] {
    if let number = Int32(word), number > 0 { return [number] }
    let found = Int(word) == nil ? numbers(named: word) : []
    guard found.isEmpty else { return found }
    throw Arguments.Mistakes(
      messages: ["\"\(word)\" is no number of a process, and no process with a run loop has that name"])
  }
}

extension Arguments {
  /// The only positional argument, or nil if there are none or several.
  var word: String? { words.count == 1 && rest == nil ? words[0] : nil }

  /// Returns the single process that was named.
  func process() throws(Mistakes) -> Int32 {
    guard let word else { throw Mistakes(messages: ["name one process"]) }
    let found = try ProcessNames.all(word)
    if found.count == 1 { return found[0] }
    let list = found.map { "\($0)" }.joined(separator: ", ")
    throw Mistakes(messages: ["\"\(word)\" is the name of several processes: \(list)"])
  }
}
