// SPDX-License-Identifier: Apache-2.0

// What the instruments of the core cost, in instructions of the loop's thread. `Benchmarks/instruments` compares what a build
// without them needs with one that has them, at each level.
//
//   instrument-gates                     prints "name instructions" for each operation, at the level of the environment
import CCounts
import Glibc
import RunLoopCore

/// Counts from one call-out of a loop to another, so many operations later.
final class Span: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private let warmUp: Int
  private let count: Int
  private var number = 0

  init(_ count: Int) {
    self.count = count
    // The level is taken up, the buffers have grown, and each record of the ring was written once.
    warmUp = 5000
  }

  /// One operation; true while there are more.
  func next() -> Bool {
    number += 1
    if number == warmUp { counts_step(true) }
    if number == warmUp + count { counts_step(false) }
    return number < warmUp + count
  }
}

/// What the instructions are of.
enum Operation: String, CaseIterable {
  case pass
  case post
  case block

  func run(_ count: Int) {
    let loop = RunLoop.current
    switch self {
    case .pass: makePasses(count, loop)
    case .post: post(count, loop, runs: false)
    case .block: post(count, loop, runs: true)
    }
  }

  /// Passes that perform a source.
  private func makePasses(_ count: Int, _ loop: RunLoop) {
    let span = Span(count)
    let source = RunLoop.Source(performing: { source in
      if span.next() { source.signal() } else { loop.stop() }
    })
    loop.add(source, forMode: .default)
    source.signal()
    loop.runUntilStopped()
  }

  /// Posts of a closure to a loop that is in a call-out, and with `runs` the blocks too.
  private func post(_ count: Int, _ loop: RunLoop, runs: Bool) {
    for turn in 0..<12 {
      let isMeasured = turn == 11
      loop.perform {
        if isMeasured { counts_step(true) }
        for _ in 0..<count { loop.perform {} }
        if isMeasured && !runs { counts_step(false) }
        loop.perform {
          if isMeasured && runs { counts_step(false) }
          loop.stop()
        }
      }
      loop.runUntilStopped()
    }
  }
}

/// Runs an operation on a thread of its own, whose loop is not the main one, and ends the process.
func runOnThread(_ operation: Operation, _ count: Int) {
  let number = UnsafeMutablePointer<(Operation, Int)>.allocate(capacity: 1)
  number.initialize(to: (operation, count))
  var thread = pthread_t()
  pthread_create(
    &thread, nil,
    { pointer in
      guard let pointer else { return nil }
      let (operation, count) = pointer.load(as: (Operation, Int).self)
      operation.run(count)
      _exit(0)
    }, number)
  pthread_join(thread, nil)
}

let arguments = CommandLine.arguments
if arguments.count == 4, arguments[1] == "--child", let operation = Operation(rawValue: arguments[2]) {
  runOnThread(operation, Int(arguments[3]) ?? 0)
}

func instructions(_ operation: Operation, _ count: Int) -> Int {
  var status: Int32 = 0
  var words: [UnsafeMutablePointer<CChar>?] = []
  for word in ["instrument-gates", "--child", operation.rawValue, "\(count)"] { words.append(strdup(word)) }
  words.append(nil)
  let steps = counts_instructions(&words, &status)
  for word in words { free(word) }
  guard steps > 0, status == 0 else {
    print("\(operation.rawValue): instructions cannot be counted here (\(steps), \(status))")
    exit(1)
  }
  return steps
}

// The difference of two lengths: what is done once cancels out.
for operation in Operation.allCases {
  let (short, long) = (20, 120)
  let each = Double(instructions(operation, long) - instructions(operation, short)) / Double(long - short)
  print("\(operation.rawValue) \(each)")
}
