// SPDX-License-Identifier: Apache-2.0

extension Literal {
  /// The literals one step simpler than this one, the large steps first; some are not valid programs.
  var simplifications: [Literal] {
    switch self {
    case .number(let number): Self.smaller(number).map(Literal.number)
    case .bool(let bool): bool ? [.bool(false)] : []
    case .list(let elements): Self.shorter(elements) + Self.withOneSimpler(elements).map(Literal.list)
    case .call(let name, let arguments): Self.simpler(name) + Self.simpler(name, arguments)
    }
  }

  private static func smaller(_ number: Int) -> [Int] {
    switch number {
    case 0: []
    case 1: [0]
    case ..<0: [0, -number, number / 2]
    default: [0, number / 2, number - 1]
    }
  }

  /// Returns lists without a part of this one: first without all of it, then each half, each quarter, and so on.
  private static func shorter(_ elements: [Literal]) -> [Literal] {
    var shorter: [Literal] = []
    var size = elements.count
    while size > 0 {
      for start in stride(from: 0, to: elements.count, by: size) {
        var rest = elements
        rest.removeSubrange(start..<min(start + size, elements.count))
        shorter.append(.list(rest))
      }
      size /= 2
    }
    return shorter
  }

  /// Returns lists with one element simpler; actions of another thread may also become actions of this one.
  private static func withOneSimpler(_ elements: [Literal]) -> [[Literal]] {
    var lists: [[Literal]] = []
    for (index, element) in elements.enumerated() {
      if case .call(".elsewhere", let arguments) = element, case .list(let actions)? = arguments.first?.value {
        lists.append(Array(elements[..<index]) + actions + elements[(index + 1)...])
      }
      for simpler in element.simplifications {
        var list = elements
        list[index] = simpler
        lists.append(list)
      }
    }
    return lists
  }

  private static func simpler(_ name: String) -> [Literal] {
    switch name {
    case ".forever": [.call(".poll")]
    case ".overdue": [.call(".poll")]
    case ".notANumber": [.call(".forever")]
    case ".common": [.call(".mode", [Argument(nil, .number(0))])]
    default: []
    }
  }

  private static func simpler(_ name: String, _ arguments: [Argument]) -> [Literal] {
    var calls: [Literal] = []
    for (index, argument) in arguments.enumerated() {
      if argument.label != nil {
        var rest = arguments
        rest.remove(at: index)
        calls.append(.call(name, rest))
      }
      let simpler = argument.label == "activities" ? withoutOneBit(argument.value) : argument.value.simplifications
      for value in simpler {
        var changed = arguments
        changed[index].value = value
        calls.append(.call(name, changed))
      }
    }
    return calls
  }

  private static func withoutOneBit(_ literal: Literal) -> [Literal] {
    guard case .number(let bits) = literal else { return [] }
    return (0..<8).filter { bits & 1 << $0 != 0 }.map { .number(bits & ~(1 << $0)) }
  }
}
