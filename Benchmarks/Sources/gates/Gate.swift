// SPDX-License-Identifier: Apache-2.0

import CCounts
import Glibc
import Limits

/// An operation whose cost is counted, and limited by a file in `Benchmarks/Limits`.
struct Gate: Sendable {
  let name: String
  /// The number of operations.
  let count: Int
  /// Prepares the operations, calls `measure` with them once, and cleans up.
  let run: @Sendable (_ count: Int, _ measure: Measure) -> Void
}

/// Counts the cost of operations for the calling thread.
///
/// The parent counts the system calls from mark to mark.
final class Measure: @unchecked Sendable {
  // Sendable: used by one thread at a time, as ordered by the gates.
  private(set) var allocations = 0
  private var before = 0

  func begin() {
    before = counts_allocations()
    counts_mark(true)
  }

  func end() {
    counts_mark(false)
    allocations += counts_allocations() - before
  }

  func callAsFunction(_ work: () -> Void) {
    begin()
    work()
    end()
  }
}

/// Runs each gate in a traced child, which reports its allocations.
func gates() {
  let arguments = CommandLine.arguments
  runStepped(arguments)
  if arguments.count == 3, arguments[1] == "--child", let gate = all.first(where: { $0.name == arguments[2] }) {
    let measure = Measure()
    gate.run(gate.count, measure)
    print(measure.allocations)
    fflush(nil)
    _exit(0)
  }
  let writes = arguments.dropFirst().first == "--write-limits"
  let limits = Limits(of: "gates", writes: writes)
  let chosen = arguments.count > 1 && !writes ? all.filter { $0.name == arguments[1] } : all
  guard !chosen.isEmpty else { fail("there is no gate of that name; there are: \(all.map(\.name))") }
  print(pad("", 44), pad("allocations", 16), "system calls")
  var failures = 0
  for gate in chosen where !check(gate, limits) { failures += 1 }
  if chosen.count == all.count {
    failures += checkRatios(limits)
    limits.finish()
  }
  if failures > 0 { fail("\(failures) operations cost more than they may") }
}

func pad(_ text: String, _ width: Int) -> String {
  text + String(repeating: " ", count: max(0, width - text.count))
}

/// Runs one gate; returns false if it exceeds a limit.
private func check(_ gate: Gate, _ limits: Limits) -> Bool {
  var output = [CChar](repeating: 0, count: 256)
  var status: Int32 = 0
  var words: [UnsafeMutablePointer<CChar>?] = []
  for word in ["gates", "--child", gate.name] { words.append(strdup(word)) }
  words.append(nil)
  let calls = counts_trace(&words, &output, output.count, &status)
  for word in words { free(word) }
  let said = String(decoding: output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  guard calls >= 0 else { fail("system calls cannot be counted here: \(String(cString: strerror(Int32(-calls))))") }
  guard status == 0, let allocations = Int(said.split(separator: "\n").last ?? "") else {
    fail("\(gate.name): ended with \(status) and said \"\(said)\"")
  }
  /// Returns the cost of each operation, and its limit.
  func compare(_ what: String, _ total: Int) -> (value: Double, limit: Double) {
    let value = Double(total) / Double(gate.count)
    return (value, limits.limit(gate.name, what, proposal: value.rounded(.up)))
  }
  let (made, called) = (compare("allocations", allocations), compare("system calls", calls))
  let isGood = made.value <= made.limit && called.value <= called.limit
  print(pad(gate.name, 44), pad(each(made), 16), each(called), isGood ? "" : "TOO MANY")
  return isGood
}

/// Formats the cost of each operation and its limit: "0.5 of 1".
private func each(_ cost: (value: Double, limit: Double)) -> String {
  "\(short(cost.value)) of \(short(cost.limit))"
}

func fail(_ what: String) -> Never {
  fflush(nil)
  let text = "gates: \(what)\n"
  _ = write(2, text, text.utf8.count)
  _exit(1)
}
