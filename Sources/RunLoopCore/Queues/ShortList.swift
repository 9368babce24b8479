// SPDX-License-Identifier: Apache-2.0

/// A list of which most have one element or none: the first two lie inline, so that a short one allocates nothing.
///
/// Two are as many as an application has common modes.
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
