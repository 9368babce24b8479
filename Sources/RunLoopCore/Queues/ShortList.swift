// SPDX-License-Identifier: Apache-2.0

/// A list that stores its first two elements inline, so that a short list does not allocate.
///
/// Most lists have at most one element, and an application has two common modes.
struct ShortList<Element> {
  private(set) var first: Element?
  private var second: Element?
  private var others: ContiguousArray<Element> = []

  init() {}

  init(_ element: Element) {
    first = element
  }

  var isEmpty: Bool { first == nil }

  mutating func append(_ element: Element) {
    if first == nil {
      first = element
    } else if second == nil {
      second = element
    } else {
      others.append(element)
    }
  }
}

extension ShortList: Sequence {
  func makeIterator() -> Iterator { Iterator(first: first, second: second, others: others.makeIterator()) }

  struct Iterator: IteratorProtocol {
    fileprivate var first: Element?
    fileprivate var second: Element?
    fileprivate var others: IndexingIterator<ContiguousArray<Element>>

    mutating func next() -> Element? {
      guard let element = first else { return others.next() }
      first = second
      second = nil
      return element
    }
  }
}
