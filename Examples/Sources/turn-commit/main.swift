// SPDX-License-Identifier: Apache-2.0

// A server that stores numbers in an SQLite file, and replies once they are durable. All requests of a turn of its
// loop are written in one transaction. With --each, every request has its own, for comparison.
//
//     turn-commit serve FILE [--port N] [--each]
//     turn-commit load PORT [--connections N] [--seconds S] [--acknowledged FILE]
//     turn-commit verify FILE ACKNOWLEDGED
//
// `load` sends a number on each connection, waits for the reply, and sends the next. It prints the acknowledged
// numbers per second, and writes the numbers to a file. `verify` looks for them in the database.

import Glibc
import RunLoopCore

let usage = """
  usage: turn-commit serve FILE [--port N] [--each]
         turn-commit load PORT [--connections N] [--seconds S] [--acknowledged FILE]
         turn-commit verify FILE ACKNOWLEDGED
  """

func say(_ message: String, on descriptor: Int32 = STDERR_FILENO) {
  var line = message + "\n"
  line.withUTF8 { _ = write(descriptor, $0.baseAddress, $0.count) }
}

func fail(_ message: String, status: Int32 = 1) -> Never {
  say("turn-commit: \(message)")
  exit(status)
}

/// The command line's positional arguments and options.
struct Arguments {
  private(set) var words: [String] = []
  private var options: [String: String] = [:]

  init(flags: Set<String>, options known: Set<String>) {
    var rest = CommandLine.arguments.dropFirst(2)
    while let word = rest.popFirst() {
      if flags.contains(word) {
        options[word] = ""
      } else if known.contains(word) {
        guard let value = rest.popFirst() else { fail("\(word) needs a value\n\(usage)", status: 2) }
        options[word] = value
      } else if word.hasPrefix("--") {
        fail("there is no option \"\(word)\"\n\(usage)", status: 2)
      } else {
        words.append(word)
      }
    }
  }

  func has(_ flag: String) -> Bool { options[flag] != nil }

  func text(_ option: String) -> String? { options[option] }

  func number(_ option: String, in range: ClosedRange<Int>, or usual: Int) -> Int {
    guard let text = options[option] else { return usual }
    guard let number = Int(text), range.contains(number) else {
      fail("\(option) \"\(text)\" is not a number from \(range.lowerBound) to \(range.upperBound)", status: 2)
    }
    return number
  }
}

do {
  switch CommandLine.arguments.dropFirst().first {
  case "serve":
    let arguments = Arguments(flags: ["--each"], options: ["--port"])
    guard arguments.words.count == 1 else { fail(usage, status: 2) }
    let port = UInt16(arguments.number("--port", in: 0...65535, or: 0))
    try Server(file: arguments.words[0], commitsEach: arguments.has("--each")).serve(port: port)
  case "load":
    let arguments = Arguments(flags: [], options: ["--connections", "--seconds", "--acknowledged"])
    guard arguments.words.count == 1, let port = UInt16(arguments.words[0]) else { fail(usage, status: 2) }
    let load = Load(
      connections: arguments.number("--connections", in: 1...1000, or: 50),
      seconds: arguments.number("--seconds", in: 1...3600, or: 3))
    try load.run(port: port)
    if let file = arguments.text("--acknowledged") { try load.write(to: file) }
  case "verify":
    let arguments = Arguments(flags: [], options: [])
    guard arguments.words.count == 2 else { fail(usage, status: 2) }
    try verify(file: arguments.words[0], acknowledged: arguments.words[1])
  default: fail(usage, status: 2)
  }
} catch {
  fail("\(error)")
}
