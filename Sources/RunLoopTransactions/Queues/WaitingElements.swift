// SPDX-License-Identifier: Apache-2.0

/// Elements in the order in which they came, with the keys by which equal ones are found.
///
/// It neither hashes nor compares a user's values: that is done by who has copies of the keys.
struct WaitingElements<Element> {
  private struct Entry {
    var element: Element
    var key: ElementKey?
    var number: Int
  }

  private var entries: ContiguousArray<Entry?> = []
  private var first = 0
  /// The keys of the elements, by their hash value.
  private var keys: [Int: ContiguousArray<(number: Int, key: ElementKey)>] = [:]
  /// How many elements there have been.
  private(set) var version = 0

  var count: Int { entries.count - first }

  /// The keys of those elements that may be equal to one.
  func candidates(for key: ElementKey?) -> [ElementKey] {
    guard let key, let found = keys[key.hash] else { return [] }
    return found.map(\.key)
  }

  mutating func append(_ element: Element, _ key: ElementKey?) {
    version += 1
    if let key { keys[key.hash, default: []].append((version, key)) }
    entries.append(Entry(element: element, key: key, number: version))
  }

  /// Takes the first element.
  ///
  /// - Complexity: O(1) amortised.
  mutating func takeFirst() -> Element? {
    guard first < entries.count, let entry = entries[first].take() else { return nil }
    first += 1
    if first == entries.count {
      entries.removeAll(keepingCapacity: true)
      first = 0
    } else if first >= 64, first * 2 >= entries.count {
      entries.removeFirst(first)
      first = 0
    }
    if let key = entry.key { remove(key, entry.number) }
    return entry.element
  }

  private mutating func remove(_ key: ElementKey, _ number: Int) {
    if keys[key.hash]?.count == 1 {
      keys[key.hash] = nil
    } else {
      keys[key.hash]?.removeAll { $0.number == number }
    }
  }
}

/// What says that two elements are the same.
struct ElementKey: @unchecked Sendable {
  // Sendable: it holds nothing but a copy of an element, which is.

  let hash: Int
  private let value: AnyHashable

  /// Nil: nothing says it, as the element is neither an object nor `Hashable`.
  init?(_ element: some Sendable) {
    if type(of: element as Any) is AnyClass {
      value = ObjectIdentifier(element as AnyObject)
    } else if let element = element as? any Hashable {
      value = AnyHashable(element)
    } else {
      return nil
    }
    hash = value.hashValue
  }

  func matches(_ other: ElementKey) -> Bool { value == other.value }
}
