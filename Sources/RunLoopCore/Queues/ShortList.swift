// SPDX-License-Identifier: Apache-2.0

/// A list that usually has one element or none: the first two are stored inline, so that a short one allocates nothing.
///
/// An application has two common modes.
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
