// SPDX-License-Identifier: Apache-2.0

// Counts the cost of the main loop while nothing uses Core Foundation's. With the limits in Benchmarks/Limits, a pass
// makes no allocation and at most the two system calls that check the main dispatch queue and, with the umbrella, the
// two with which Core Foundation checks before a wait whether its loop has items. A pass that does not wait checks
// every sixteenth time.
//
//     main-gates                      with the umbrella linked
//     main-gates-core                 the same source without it: the cost of the loop alone
//     main-gates passes COUNT         passes, for callgrind with both programs and two counts
//     main-gates --write-limits       makes the counts the limits of this toolchain, in Benchmarks/Limits

import CCounts
import Dispatch
import Glibc
import Limits
import Synchronization

#if UMBRELLA
  import RunLoopKit
#else
  import RunLoopCore
#endif

/// A kind of pass that is counted.
struct Gate: Sendable {
  let name: String
  let count: Int
  let prepare: @Sendable (_ next: @escaping @Sendable () -> Void) -> Void
}

#if UMBRELLA
  let program = "main-gates"
#else
  let program = "main-gates-core"
#endif

let gates = [
  Gate(name: "pass that performs a source", count: 1000) { next in
    let itself = Mutex<RunLoop.Source?>(nil)
    let source = RunLoop.Source {
      next()
      itself.withLock { $0 }?.signal()
    }
    itself.withLock { $0 = source }
    RunLoop.main.add(source, forMode: .default)
    source.signal()
  },
  Gate(name: "fire of a repeating timer", count: 200) { next in
    RunLoop.main.add(Timer(timeInterval: 0.0005, repeats: true) { _ in next() }, forMode: .default)
  },
]

// Makes the loop check the main dispatch queue.
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

let limits = Limits(of: program, writes: CommandLine.arguments.dropFirst().first == "--write-limits")
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
  let made = Double(allocations) / Double(gate.count)
  let called = Double(calls) / Double(gate.count)
  let mayMake = limits.limit(gate.name, "allocations", proposal: made.rounded(.up))
  // Adds a hundredth for the calls of the first and last pass.
  let mayCall = limits.limit(gate.name, "system calls", proposal: (called * 100 + 1).rounded(.up) / 100)
  print(
    "\(gate.name), each: \(short(made)) allocations of \(short(mayMake)),",
    "\(short(called)) system calls of \(short(mayCall))")
  isGood = isGood && made <= mayMake && called <= mayCall
}
limits.finish()
exit(isGood ? 0 : 1)
