// SPDX-License-Identifier: Apache-2.0

/// Runs a program on Core Foundation's loop, on ours and on the model of both, and compares the logs.
package struct Comparison: Sendable {
  private let coreFoundation: any Machine
  private let ours: any Machine
  private let model: @Sendable (Set<Difference>) -> any Machine

  package init() { self.init(ours: RunLoopMachine()) }

  /// Compares with other machines in the place of the usual ones.
  init(
    coreFoundation: any Machine = CoreFoundationMachine(), ours: any Machine,
    model: @escaping @Sendable (Set<Difference>) -> any Machine = { ReferenceModel(switches: $0) }
  ) {
    self.coreFoundation = coreFoundation
    self.ours = ours
    self.model = model
  }

  /// What the comparison of one program has found.
  package enum Verdict: Hashable, Sendable {
    /// All logs are the same.
    case equal
    /// Both loops do what the model says, which names why they differ: the smallest set of differences that gives our
    /// log, of several the one with the smaller numbers.
    case named(Set<Difference>)
    /// A loop does not do what the model says.
    case different(Disagreement)
  }

  /// Which loop does not do what the model says, or does not come to an end.
  package struct Disagreement: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let coreFoundation = Disagreement(rawValue: 1)
    package static let ours = Disagreement(rawValue: 2)
    /// A loop does not come to an end.
    package static let hung = Disagreement(rawValue: 4)
  }

  /// The logs of one program.
  package struct Logs: Hashable, Sendable {
    package var coreFoundation: Log
    package var ours: Log
    /// What the model says that Core Foundation's loop does.
    package var modelOfCoreFoundation: Log
    /// What the model says that our loop does.
    package var modelOfOurs: Log
  }

  package func logs(of program: Program) -> Logs {
    Logs(
      coreFoundation: coreFoundation.run(program), ours: ours.run(program),
      modelOfCoreFoundation: model([]).run(program), modelOfOurs: model(Set(Difference.allCases)).run(program))
  }

  package func verdict(on program: Program) -> Verdict { verdict(on: program, from: logs(of: program)) }

  /// What the logs of a program say.
  ///
  /// To show the logs that were compared: a second run may hide what the first has shown.
  package func verdict(on program: Program, from logs: Logs) -> Verdict {
    var disagreement: Disagreement = []
    if logs.coreFoundation != logs.modelOfCoreFoundation { disagreement.insert(.coreFoundation) }
    if logs.ours != logs.modelOfOurs { disagreement.insert(.ours) }
    if logs.coreFoundation.isHung || logs.ours.isHung { disagreement.insert(.hung) }
    guard disagreement.isEmpty else { return .different(disagreement) }
    return logs.coreFoundation == logs.ours ? .equal : .named(name(of: program, giving: logs.ours))
  }

  /// The smallest set of differences with which the model gives a log; all of them together do.
  private func name(of program: Program, giving log: Log) -> Set<Difference> {
    func gives(_ differences: Set<Difference>) -> Bool { model(differences).run(program) == log }
    // A set that no difference can be spared from, though it need not be the smallest.
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
  /// The first subset of a size that satisfies a condition, in the order of the elements.
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
