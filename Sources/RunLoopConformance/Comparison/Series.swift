import RunLoopCore
import Synchronization

/// Many random programs, compared.
package struct Series: Sendable {
  package var seed: UInt64
  /// The numbers of the programs.
  package var numbers: Range<Int>
  /// How many threads compare.
  package var jobs: Int
  /// How many programs may differ before the series ends.
  package var patience = 5

  private let comparison: Comparison

  package init(seed: UInt64, numbers: Range<Int>, jobs: Int = 1, comparison: Comparison = Comparison()) {
    self.seed = seed
    self.numbers = numbers
    self.jobs = jobs
    self.comparison = comparison
  }

  /// What a series has found.
  package struct Report: Hashable, Sendable {
    package var equal = 0
    /// How many programs each set of differences explains.
    package var named: [Set<Difference>: Int] = [:]
    /// The programs in which a loop does not do what the model says, by their numbers.
    package var different: [Int: Comparison.Disagreement] = [:]

    package var namedCount: Int { named.values.reduce(0, +) }
    package var count: Int { equal + namedCount + different.count }

    /// How many programs each difference had a part in.
    package var parts: [Difference: Int] {
      var parts: [Difference: Int] = [:]
      for (differences, count) in named {
        for difference in differences { parts[difference, default: 0] += count }
      }
      return parts
    }

    mutating func note(_ verdict: Comparison.Verdict, of number: Int) {
      switch verdict {
      case .equal: equal += 1
      case .named(let differences): named[differences, default: 0] += 1
      case .different(let disagreement): different[number] = disagreement
      }
    }
  }

  package func program(_ number: Int) -> Program {
    var generator = Generator(seed: seed, number: number)
    return generator.program()
  }

  /// Compares the programs until the last, or until too many differ.
  package func run() -> Report {
    let state = Mutex((next: numbers.lowerBound, report: Report()))
    @Sendable func takeNext() -> Int? {
      state.withLock { state in
        guard state.next < numbers.upperBound, state.report.different.count < patience else { return nil }
        // A program that hangs has its thread for ever.
        guard !state.report.different.values.contains(where: { $0.contains(.hung) }) else { return nil }
        state.next += 1
        return state.next - 1
      }
    }
    let workers = (0..<jobs).map { _ in
      startThread {
        while let number = takeNext() {
          let verdict = comparison.verdict(on: program(number))
          state.withLock { $0.report.note(verdict, of: number) }
        }
      }
    }
    for worker in workers { worker.result() }
    return state.withLock { $0.report }
  }
}
