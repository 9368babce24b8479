// SPDX-License-Identifier: Apache-2.0

/// Elements in the order in which they were added, with the keys that identify duplicates.
///
/// It never hashes or compares user values itself. Callers do that with copies of the keys.
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
  /// The number of elements that have ever been added.
  private(set) var version = 0

  var count: Int { entries.count - first }

  /// Returns the keys that have the same hash value as `key`.
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

/// The identity or value by which two elements are considered equal.
struct ElementKey: @unchecked Sendable {
  // Sendable: it holds only a copy of an element, which is Sendable.

  let hash: Int
  private let value: AnyHashable

  /// Returns nil if the element cannot be compared, because it is neither an object nor `Hashable`.
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
