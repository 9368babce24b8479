// SPDX-License-Identifier: Apache-2.0

/// Runs a program on Core Foundation's loop, on ours and on the model of both, and compares the logs.
package struct Comparison: Sendable {
  private let coreFoundation: any Machine
  private let ours: any Machine
  private let model: @Sendable (Set<Difference>) -> any Machine

  package init() { self.init(ours: RunLoopMachine()) }

  /// Creates a comparison of other machines than the default ones.
  init(
    coreFoundation: any Machine = CoreFoundationMachine(), ours: any Machine,
    model: @escaping @Sendable (Set<Difference>) -> any Machine = { ReferenceModel(switches: $0) }
  ) {
    self.coreFoundation = coreFoundation
    self.ours = ours
    self.model = model
  }

  /// The result of comparing one program.
  package enum Verdict: Hashable, Sendable {
    /// All logs are the same.
    case equal
    /// Both loops follow the model, which explains the differences: the smallest set of them that results in our log,
    /// and of several the one with the smaller numbers.
    case named(Set<Difference>)
    /// A loop does not follow the model.
    case different(Disagreement)
  }

  /// The loops that do not follow the model, or do not end.
  package struct Disagreement: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let coreFoundation = Disagreement(rawValue: 1)
    package static let ours = Disagreement(rawValue: 2)
    /// A loop does not end.
    package static let hung = Disagreement(rawValue: 4)
  }

  /// The logs of one program.
  package struct Logs: Hashable, Sendable {
    package var coreFoundation: Log
    package var ours: Log
    /// The model's log for Core Foundation's loop.
    package var modelOfCoreFoundation: Log
    /// The model's log for our loop.
    package var modelOfOurs: Log
  }

  package func logs(of program: Program) -> Logs {
    Logs(
      coreFoundation: coreFoundation.run(program), ours: ours.run(program),
      modelOfCoreFoundation: model([]).run(program), modelOfOurs: model(Set(Difference.allCases)).run(program))
  }

  package func verdict(on program: Program) -> Verdict { verdict(on: program, from: logs(of: program)) }

  /// Returns the verdict for a program's logs.
  ///
  /// Takes the compared logs as an argument because a second run may have other logs.
  package func verdict(on program: Program, from logs: Logs) -> Verdict {
    var disagreement: Disagreement = []
    if logs.coreFoundation != logs.modelOfCoreFoundation { disagreement.insert(.coreFoundation) }
    if logs.ours != logs.modelOfOurs { disagreement.insert(.ours) }
    if logs.coreFoundation.isHung || logs.ours.isHung { disagreement.insert(.hung) }
    guard disagreement.isEmpty else { return .different(disagreement) }
    return logs.coreFoundation == logs.ours ? .equal : .named(name(of: program, giving: logs.ours))
  }

  /// Returns the smallest set of differences with which the model logs `log`; the set of all does.
  private func name(of program: Program, giving log: Log) -> Set<Difference> {
    func gives(_ differences: Set<Difference>) -> Bool { model(differences).run(program) == log }
    // Finds a minimal set, which need not be the smallest.
    var spare = Set(Difference.allCases)
    for difference in Difference.allCases.reversed() where gives(spare.subtracting([difference])) {
      spare.remove(difference)
    }
    for size in 1..<max(1, spare.count) {
      if let smaller = Difference.allCases.firstSubset(of: size, where: gives) { return smaller }
    }
    return Difference.allCases.firstSubset(of: spare.count, where: gives) ?? spare
  }
}

extension Log {
  var isHung: Bool { entries.last?.event == .hung }
}

extension [Difference] {
  /// Returns the first subset of a size that satisfies a condition, in the order of the elements.
  fileprivate func firstSubset(of size: Int, where isRight: (Set<Difference>) -> Bool) -> Set<Difference>? {
    func search(_ chosen: Set<Difference>, from start: Int) -> Set<Difference>? {
      guard chosen.count < size else { return isRight(chosen) ? chosen : nil }
      for index in start..<Swift.max(start, count - (size - chosen.count) + 1) {
        if let found = search(chosen.union([self[index]]), from: index + 1) { return found }
      }
      return nil
    }
    return search([], from: 0)
  }
}
