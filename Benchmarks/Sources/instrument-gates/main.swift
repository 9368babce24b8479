// SPDX-License-Identifier: Apache-2.0

// The cost of the core's instruments for the loop's thread: instructions, allocations and system calls.
// `Benchmarks/instruments` compares a build without them with one that has them, at each level.
//
//   instrument-gates    prints "name instructions" for each operation, at the level of the environment, and
//                       "name-allocations number" and "name-calls number" of a hundred of them
import CCounts
import Glibc
import RunLoopCore

/// Starts and stops counting.
enum Count {
  /// Whether a parent stops this process at its system calls instead of stepping through it.
  static let isTraced = CommandLine.arguments.dropFirst().first == "--traced"
  // Used by the loop's thread only.
  nonisolated(unsafe) private static var before = 0
  nonisolated(unsafe) private(set) static var allocations = 0

  static func count(_ counts: Bool) {
    guard isTraced else { return counts_step(counts) }
    if counts { before = counts_allocations() }
    counts_mark(counts)
    if !counts { allocations = counts_allocations() - before }
  }
}

/// Counts from one call-out of a loop to a later one.
final class Span: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private let warmUp: Int
  private let count: Int
  private var number = 0

  init(_ count: Int) {
    self.count = count
    // By then the level applies, the buffers have grown, and each record of the ring was written once.
    warmUp = 5000
  }

  /// Counts one operation; returns true while there are more.
  func next() -> Bool {
    number += 1
    if number == warmUp { Count.count(true) }
    if number == warmUp + count { Count.count(false) }
    return number < warmUp + count
  }
}

/// The operations whose instructions are counted.
enum Operation: String, CaseIterable {
  case pass
  case post
  case block
  case sleep

  func run(_ count: Int) {
    let loop = RunLoop.current
    switch self {
    case .pass: makePasses(count, loop)
    case .post: post(count, loop, runs: false)
    case .block: post(count, loop, runs: true)
    case .sleep: sleep(count, loop)
    }
  }

  /// Makes passes with a wait that a descriptor ends at once.
  private func sleep(_ count: Int, _ loop: RunLoop) {
    let span = Span(count)
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { fatalError("there is no pipe") }
    let (reading, writing) = (ends[0], ends[1])
    let source = RunLoop.DescriptorSource(descriptor: reading, events: .readable) { _, _ in
      var byte: UInt8 = 0
      _ = read(reading, &byte, 1)
      if !span.next() { loop.stop() }
      _ = write(writing, &byte, 1)
    }
    _ = write(writing, "x", 1)
    do { try loop.add(source, forMode: .default) } catch { fatalError("\(error)") }
    loop.runUntilStopped()
  }

  /// Makes passes that perform a source.
  private func makePasses(_ count: Int, _ loop: RunLoop) {
    let span = Span(count)
    let source = RunLoop.Source(performing: { source in
      if span.next() { source.signal() } else { loop.stop() }
    })
    loop.add(source, forMode: .default)
    source.signal()
    loop.runUntilStopped()
  }

  /// Posts closures to a loop in a call-out, counting their runs too if `runs` is true.
  private func post(_ count: Int, _ loop: RunLoop, runs: Bool) {
    for turn in 0..<12 {
      let isMeasured = turn == 11
      loop.perform {
        if isMeasured { Count.count(true) }
        for _ in 0..<count { loop.perform {} }
        if isMeasured && !runs { Count.count(false) }
        loop.perform {
          if isMeasured && runs { Count.count(false) }
          loop.stop()
        }
      }
      loop.runUntilStopped()
    }
  }
}

/// Runs an operation on a thread other than the main one, and exits the process.
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
      if Count.isTraced { print(Count.allocations) }
      fflush(nil)
      _exit(0)
    }, number)
  pthread_join(thread, nil)
}

let arguments = CommandLine.arguments
if arguments.count == 4, ["--stepped", "--traced"].contains(arguments[1]),
  let operation = Operation(rawValue: arguments[2])
{
  runOnThread(operation, Int(arguments[3]) ?? 0)
}

/// Calls `body` with the arguments with which this program runs an operation in a child.
func withWords<Result>(
  _ how: String, _ operation: Operation, _ count: Int, _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
  let texts: [String] = ["instrument-gates", how, operation.rawValue, "\(count)"]
  let words: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) }
  defer { for word in words { free(word) } }
  return body(words + [nil])
}

func instructions(_ operation: Operation, _ count: Int) -> Int {
  var status: Int32 = 0
  let steps = withWords("--stepped", operation, count) { counts_instructions($0, &status) }
  guard steps > 0, status == 0 else {
    print("\(operation.rawValue): instructions cannot be counted here (\(steps), \(status))")
    exit(1)
  }
  return steps
}

/// Returns the allocations and system calls of `count` operations.
func traced(_ operation: Operation, _ count: Int) -> (allocations: Int, calls: Int) {
  var status: Int32 = 0
  var output = [CChar](repeating: 0, count: 64)
  let calls = withWords("--traced", operation, count) { counts_trace($0, &output, output.count, &status) }
  let text = String(decoding: output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  guard calls >= 0, status == 0, let allocations = Int(text.prefix { $0 != "\n" }) else {
    print("\(operation.rawValue): system calls cannot be counted here (\(calls), \(status), \(text))")
    exit(1)
  }
  return (allocations, calls)
}

// The difference between two counts cancels out the constant part.
for operation in Operation.allCases {
  let (short, long) = (20, 120)
  let each = Double(instructions(operation, long) - instructions(operation, short)) / Double(long - short)
  print("\(operation.rawValue) \(each)")
  let counted = traced(operation, 100)
  print("\(operation.rawValue)-allocations \(counted.allocations)")
  print("\(operation.rawValue)-calls \(counted.calls)")
}
