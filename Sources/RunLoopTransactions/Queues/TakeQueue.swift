// SPDX-License-Identifier: Apache-2.0

/// A first-in, first-out queue.
///
/// The storage of taken elements is reused, even if the queue never becomes empty.
struct TakeQueue<Element> {
  private var elements: ContiguousArray<Element?> = []
  private var taken = 0

  var count: Int { elements.count - taken }
  var isEmpty: Bool { count == 0 }

  /// The first element, or nil if the queue is empty.
  ///
  /// Setting it replaces the first element, and has no effect on an empty queue.
  var first: Element? {
    get { isEmpty ? nil : elements[taken] }
    set { if !isEmpty { elements[taken] = newValue } }
  }

  mutating func append(_ element: Element) { elements.append(element) }

  /// Takes the first element.
  ///
  /// - Complexity: O(1) amortised.
  mutating func takeFirst() -> Element? {
    guard !isEmpty, let element = elements[taken].take() else { return nil }
    taken += 1
    if isEmpty {
      elements.removeAll(keepingCapacity: true)
      taken = 0
    } else if taken >= 64, taken * 2 >= elements.count {
      elements.removeFirst(taken)
      taken = 0
    }
    return element
  }

  mutating func takeAll() -> [Element] {
    defer { self = TakeQueue() }
    return elements[taken...].compactMap { $0 }
  }

  /// The number of slots, including those already taken, for tests.
  var placeCount: Int { elements.count }
}
