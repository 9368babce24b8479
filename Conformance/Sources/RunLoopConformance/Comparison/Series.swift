// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// A comparison of many random programs.
package struct Series: Sendable {
  package var seed: UInt64
  /// The numbers of the programs.
  package var numbers: Range<Int>
  /// The number of threads.
  package var jobs: Int
  /// The number of different programs after which the series ends.
  package var patience = 5

  private let comparison: Comparison

  package init(seed: UInt64, numbers: Range<Int>, jobs: Int = 1, comparison: Comparison = Comparison()) {
    self.seed = seed
    self.numbers = numbers
    self.jobs = jobs
    self.comparison = comparison
  }

  /// The results of a series.
  package struct Report: Hashable, Sendable {
    package var equal = 0
    /// The number of programs that each set of differences explains.
    package var named: [Set<Difference>: Int] = [:]
    /// The programs in which a loop does not follow the model, by their numbers.
    package var different: [Int: Comparison.Disagreement] = [:]
    /// The logs of those programs in the comparison; another run may have other logs.
    package var logs: [Int: Comparison.Logs] = [:]

    package var namedCount: Int { named.values.reduce(0, +) }
    package var count: Int { equal + namedCount + different.count }

    /// The number of programs in which each difference is involved.
    package var parts: [Difference: Int] {
      var parts: [Difference: Int] = [:]
      for (differences, count) in named {
        for difference in differences { parts[difference, default: 0] += count }
      }
      return parts
    }

    fileprivate mutating func add(_ other: Report) {
      equal += other.equal
      named.merge(other.named, uniquingKeysWith: +)
      different.merge(other.different) { first, _ in first }
      logs.merge(other.logs) { first, _ in first }
    }

    fileprivate mutating func note(_ verdict: Comparison.Verdict, from logs: Comparison.Logs, of number: Int) {
      switch verdict {
      case .equal: equal += 1
      case .named(let differences): named[differences, default: 0] += 1
      case .different(let disagreement):
        different[number] = disagreement
        self.logs[number] = logs
      }
    }
  }

  package func program(_ number: Int) -> Program {
    var generator = Generator(seed: seed, number: number)
    return generator.program()
  }

  /// Compares the programs until the last one, or until too many differ.
  package func run() -> Report {
    let next = Atomic(numbers.lowerBound)
    let differing = Atomic(0)
    let workers = (0..<jobs).map { _ in
      startThread {
        var report = Report()
        while differing.load(ordering: .relaxed) < patience {
          let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
          guard number < numbers.upperBound else { break }
          let program = program(number)
          let logs = comparison.logs(of: program)
          let verdict = comparison.verdict(on: program, from: logs)
          report.note(verdict, from: logs, of: number)
          guard case .different(let disagreement) = verdict else { continue }
          // A program that hangs occupies its thread permanently, so one is enough.
          differing.wrappingAdd(disagreement.contains(.hung) ? patience : 1, ordering: .relaxed)
        }
        return report
      }
    }
    var report = Report()
    for worker in workers { report.add(worker.result()) }
    return report
  }
}
