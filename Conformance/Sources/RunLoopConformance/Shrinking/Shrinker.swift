// SPDX-License-Identifier: Apache-2.0

/// Finds a small program that fails like a given one.
package struct Shrinker {
  /// The number of programs that were tried.
  package private(set) var tries = 0
  private let limit: Int

  /// - Parameter limit: The maximum number of programs to try.
  package init(limit: Int = 20_000) { self.limit = limit }

  /// Returns the smallest failing program that was found.
  ///
  /// Each step makes the program simpler, so the search ends. Unless it reached the limit, no single further step
  /// results in a simpler program that still fails.
  package mutating func smallest(_ program: Program, where fails: (Program) -> Bool) -> Program {
    var smallest = program
    var isDone = false
    while !isDone {
      isDone = true
      var steps = smallest.simplifications
      var position = 0
      while position < steps.count, tries < limit {
        let simpler = steps[position].program()
        if let simpler, simpler != smallest, simpler.faults.isEmpty, isFailing(simpler, fails) {
          // Continues from this step, as the earlier ones did not help with the larger program.
          smallest = simpler
          steps = smallest.simplifications
          isDone = false
        } else {
          position += 1
        }
      }
    }
    return smallest
  }

  private mutating func isFailing(_ program: Program, _ fails: (Program) -> Bool) -> Bool {
    tries += 1
    return fails(program)
  }
}

extension Program {
  /// All steps that make the program simpler, the large ones first.
  fileprivate var simplifications: [Simplification] {
    items.map { .without($0, self) } + blocks.indices.map { .withoutBlock($0, self) }
      + literal.simplifications.map { .literal($0) }
  }

  private var items: [Item] {
    sources.indices.map(Item.source) + observers.indices.map(Item.observer) + timers.indices.map(Item.timer)
  }
}

/// A step from one program to a simpler one.
private enum Simplification {
  case without(Item, Program)
  case withoutBlock(Int, Program)
  case literal(Literal)

  func program() -> Program? {
    switch self {
    case .without(let item, let program): program.removing(item)
    case .withoutBlock(let block, let program): program.removing(block: block)
    case .literal(let literal): try? Program(literal)
    }
  }
}
