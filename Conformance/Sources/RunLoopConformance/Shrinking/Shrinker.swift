// SPDX-License-Identifier: Apache-2.0

/// Finds a small program that still fails as a large one does.
package struct Shrinker {
  /// How many programs it has tried.
  package private(set) var tries = 0
  private let limit: Int

  /// - Parameter limit: How many programs to try at most.
  package init(limit: Int = 20_000) { self.limit = limit }

  /// The smallest program that was found to fail.
  ///
  /// Each step makes the program simpler, so that this ends: if it ends before the limit, no single step makes the
  /// program simpler and lets it fail.
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
          // On from here: what stands before was of no use to the larger program.
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
  /// Every step that makes the program simpler, the large ones first.
  fileprivate var simplifications: [Simplification] {
    items.map { .without($0, self) } + blocks.indices.map { .withoutBlock($0, self) }
      + literal.simplifications.map { .literal($0) }
  }

  private var items: [Item] {
    sources.indices.map(Item.source) + observers.indices.map(Item.observer) + timers.indices.map(Item.timer)
  }
}

/// One program that is simpler than another.
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
