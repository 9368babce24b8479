// SPDX-License-Identifier: Apache-2.0

/// A small random number generator with reproducible results.
///
/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
package struct SplitMix64: Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  /// Returns a number from zero up to `bound`, which must be positive.
  package mutating func number(below bound: Int) -> Int {
    Int(next().multipliedFullWidth(by: UInt64(bound)).high)
  }

  package mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + number(below: range.count)
  }

  /// Returns true with a probability in percent.
  package mutating func chance(_ percent: Int) -> Bool { number(below: 100) < percent }

  package mutating func element<Element>(of elements: [Element]) -> Element { elements[number(below: elements.count)] }

  /// Returns one of several elements, with probabilities proportional to their weights.
  mutating func element<Element>(weighing elements: [(weight: Int, element: Element)]) -> Element {
    var rest = number(below: elements.reduce(0) { $0 + $1.weight })
    for (weight, element) in elements {
      if rest < weight { return element }
      rest -= weight
    }
    preconditionFailure("no element weighs anything")
  }
}
