// SPDX-License-Identifier: Apache-2.0

// What the main loop costs while nothing uses Core Foundation's, counted. Fails if a pass makes an allocation, or more
// system calls than the two with which it asks after the main dispatch queue, and, with the umbrella, the two with
// which Core Foundation checks before a wait whether its loop has items. A pass that does not wait checks every
// sixteenth time.
//
//     main-gates                      with the umbrella linked
//     main-gates-core                 the same text without it: what the loop costs by itself
//     main-gates passes COUNT         passes, to be counted by callgrind in both programs, with two counts

import CCounts
import Dispatch
import Glibc
import Synchronization

#if UMBRELLA
  import RunLoopKit
#else
  import RunLoopCore
#endif

/// A pass, and how many system calls each may make.
struct Gate: Sendable {
  let name: String
  let count: Int
  let systemCalls: Double
  let prepare: @Sendable (_ next: @escaping @Sendable () -> Void) -> Void
}

#if UMBRELLA
  let (callsOfCheck, passesOfCheck) = (2.0, 16.0)
#else
  let (callsOfCheck, passesOfCheck) = (0.0, 1.0)
#endif

let gates = [
  Gate(name: "pass that performs a source", count: 1000, systemCalls: 2.01 + callsOfCheck / passesOfCheck) { next in
    let itself = Mutex<RunLoop.Source?>(nil)
    let source = RunLoop.Source {
      next()
      itself.withLock { $0 }?.signal()
    }
    itself.withLock { $0 = source }
    RunLoop.main.add(source, forMode: .default)
    source.signal()
  },
  Gate(name: "fire of a repeating timer", count: 200, systemCalls: 2 + callsOfCheck) { next in
    RunLoop.main.add(Timer(timeInterval: 0.0005, repeats: true) { _ in next() }, forMode: .default)
  },
]

// The main dispatch queue is there to be asked after.
DispatchQueue.main.async {}

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "passes", let count = Int(CommandLine.arguments[2]) {
  let turns = Atomic<Int>(0)
  gates[0].prepare {
    if turns.wrappingAdd(1, ordering: .relaxed).newValue == count { RunLoop.main.stop() }
  }
  RunLoop.main.runUntilStopped()
  exit(0)
}

if CommandLine.arguments.count == 3, let gate = gates.first(where: { $0.name == CommandLine.arguments[2] }) {
  let turns = Atomic<Int>(0)
  let before = Atomic<Int>(0)
  let made = Atomic<Int>(0)
  gate.prepare {
    let turn = turns.wrappingAdd(1, ordering: .relaxed).newValue
    if turn == 100 {
      before.store(counts_allocations(), ordering: .relaxed)
      counts_mark(true)
    }
    guard turn == 100 + gate.count else { return }
    counts_mark(false)
    made.store(counts_allocations() - before.load(ordering: .relaxed), ordering: .relaxed)
    RunLoop.main.stop()
  }
  RunLoop.main.runUntilStopped()
  print(made.load(ordering: .relaxed))
  exit(0)
}

var isGood = true
for gate in gates {
  let line: [String] = ["main-gates", "--child", gate.name]
  var words: [UnsafeMutablePointer<CChar>?] = line.map { strdup($0) } + [nil]
  var output = [CChar](repeating: 0, count: 256)
  var status: Int32 = 0
  let calls = counts_trace(&words, &output, output.count, &status)
  let said = String(decoding: output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    .split(whereSeparator: \.isWhitespace)
  guard calls >= 0, status == 0, said.count == 1, let allocations = Int(said[0]) else {
    print("\(gate.name): \(calls), status \(status), \(said)")
    exit(1)
  }
  print(
    "\(gate.name), each: \(Double(allocations) / Double(gate.count)) allocations of 0,",
    "\(Double(calls) / Double(gate.count)) system calls of \(gate.systemCalls)")
  isGood = isGood && allocations == 0 && Double(calls) <= Double(gate.count) * gate.systemCalls
}
exit(isGood ? 0 : 1)
