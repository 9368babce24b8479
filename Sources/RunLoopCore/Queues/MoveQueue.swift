// SPDX-License-Identifier: Apache-2.0

/// A FIFO buffer whose elements are moved in and out.
///
/// Removing an element ends the queue's reference to it immediately, which a standard array cannot do without copying.
/// The elements are contiguous from `head` to `tail`; the space before `head` is reused when the end is reached.
struct MoveQueue<Element>: ~Copyable {
  private(set) var storage: UnsafeMutablePointer<Element>?
  private(set) var head = 0
  private(set) var tail = 0
  private(set) var capacity = 0

  init() {}

  deinit {
    storage?.advanced(by: head).deinitialize(count: tail - head)
    storage?.deallocate()
  }

  var count: Int { tail - head }
  var isEmpty: Bool { head == tail }

  /// Appends an element.
  ///
  /// - Complexity: O(1) amortised
  @inline(__always)
  mutating func append(_ element: consuming Element) {
    if tail == capacity { makeRoom() }
    storage.unsafelyUnwrapped.advanced(by: tail).initialize(to: element)
    tail += 1
  }

  /// Removes and returns the first element of the queue, which must not be empty.
  ///
  /// - Complexity: O(1)
  @inline(__always)
  mutating func takeFirst() -> Element {
    precondition(head < tail, "an empty queue has no first element")
    let element = storage.unsafelyUnwrapped.advanced(by: head).move()
    head += 1
    if head == tail {
      head = 0
      tail = 0
    }
    return element
  }

  /// Removes and returns the last element of the queue, which must not be empty.
  ///
  /// - Complexity: O(1)
  mutating func takeLast() -> Element {
    precondition(head < tail, "an empty queue has no last element")
    tail -= 1
    let element = storage.unsafelyUnwrapped.advanced(by: tail).move()
    if head == tail {
      head = 0
      tail = 0
    }
    return element
  }

  /// Calls a closure with the element at an offset from the first.
  ///
  /// - Complexity: O(1)
  func withElement<Result>(at offset: Int, _ body: (borrowing Element) -> Result) -> Result {
    precondition(offset >= 0 && head + offset < tail, "offset \(offset) of \(count) elements")
    return body(storage.unsafelyUnwrapped[head + offset])
  }

  /// Moves the elements starting at `offset` to the end of `other`.
  ///
  /// - Complexity: O(n) in the number of elements moved
  mutating func moveSuffix(from offset: Int, to other: inout MoveQueue<Element>) {
    precondition(offset >= 0 && offset <= count, "offset \(offset) of \(count) elements")
    for position in head + offset..<tail {
      other.append(storage.unsafelyUnwrapped.advanced(by: position).move())
    }
    tail = head + offset
    if head == tail {
      head = 0
      tail = 0
    }
  }

  /// Frees memory after a burst: an empty queue keeps a capacity of at most `limit`.
  mutating func trim(to limit: Int) {
    guard isEmpty, capacity > limit else { return }
    storage?.deallocate()
    storage = nil
    capacity = 0
  }

  @inline(never)
  private mutating func makeRoom() {
    if head > capacity / 2 {
      storage.unsafelyUnwrapped.moveInitialize(from: storage.unsafelyUnwrapped + head, count: count)
    } else {
      let larger = max(4, capacity * 2)
      let room = UnsafeMutablePointer<Element>.allocate(capacity: larger)
      if let storage {
        room.moveInitialize(from: storage + head, count: count)
        storage.deallocate()
      }
      storage = room
      capacity = larger
    }
    tail = count
    head = 0
  }
}

extension MoveQueue {
  /// Calls a closure with each of the first thousand elements.
  func forEachFirst(_ body: (borrowing Element) -> Void) {
    for offset in 0..<Swift.min(count, 1000) { withElement(at: offset, body) }
  }

  /// Checks the queue's invariants, for tests.
  func checkInvariants() {
    precondition(0 <= head && head <= tail && tail <= capacity, "head \(head), tail \(tail), capacity \(capacity)")
    precondition(head < tail || head == 0, "an empty queue begins at 0, not at \(head)")
    precondition((storage == nil) == (capacity == 0), "storage without capacity or capacity without storage")
  }
}
