// SPDX-License-Identifier: Apache-2.0

/// An asynchronous sequence of a source's events.
///
/// The buffer is bounded; the function that creates the sequence documents what happens to events that arrive while it
/// is full. When the source becomes invalid or its loop ends, the sequence returns the buffered events and then ends.
/// When the sequence and its iterators are released, the source is invalidated. Only one task can wait at a time; if a
/// second one calls `next()`, the call returns `nil` immediately.
public struct EventSequence<Element: Sendable>: AsyncSequence, Sendable {
  /// The sequence never throws.
  public typealias Failure = Never

  private let consumer: EventConsumer<Element>

  package init(_ buffer: EventBuffer<Element>, release: @escaping @Sendable () -> Void) {
    consumer = EventConsumer(buffer, release)
  }

  /// Creates an iterator, which shares the sequence's events with all its other iterators.
  public func makeAsyncIterator() -> Iterator { Iterator(consumer: consumer) }

  /// An iterator over the events.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let consumer: EventConsumer<Element>

    /// Returns the next event, or `nil` at the end or if the task is cancelled.
    public mutating func next() async -> Element? { await consumer.buffer.next() }

    /// Returns the next event, or `nil` at the end or if the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? { await consumer.buffer.next() }
  }
}

/// Invalidates the source when the sequence and its iterators are released.
private final class EventConsumer<Element: Sendable>: Sendable {
  let buffer: EventBuffer<Element>
  private let release: @Sendable () -> Void

  init(_ buffer: EventBuffer<Element>, _ release: @escaping @Sendable () -> Void) {
    self.buffer = buffer
    self.release = release
  }

  deinit { release() }
}

/// An object held only by a source's handler: when it is released, no more events can arrive.
package final class EventProducer<Element: Sendable>: Sendable {
  private let buffer: EventBuffer<Element>

  package init(_ buffer: EventBuffer<Element>) {
    self.buffer = buffer
  }

  package func send(_ element: Element) { buffer.append(element) }

  deinit { buffer.finish() }
}

/// A bounded queue between a loop and a task.
package final class EventBuffer<Element: Sendable>: @unchecked Sendable {
  // Sendable: the lock guards the state; the thread that takes a continuation resumes it.

  private let lock = Lock()
  private let capacity: Int
  private let merge: @Sendable (_ last: inout Element, _ next: Element) -> Void
  private var elements: [Element] = []
  private var first = 0
  private var isFinished = false
  private var waiter: CheckedContinuation<Element?, Never>?
  private var waiterNumber = 0

  /// Creates a queue with room for at least one element; `merge` combines a new element with the last if it is full.
  package init(capacity: Int, merge: @escaping @Sendable (inout Element, Element) -> Void) {
    self.capacity = max(1, capacity)
    self.merge = merge
  }

  package func append(_ element: Element) {
    let taken = lock.withLock { () -> CheckedContinuation<Element?, Never>? in
      guard !isFinished else { return nil }
      if let waiter = waiter.take() { return waiter }
      if elements.count - first < capacity {
        elements.append(element)
      } else {
        merge(&elements[elements.count - 1], element)
      }
      return nil
    }
    taken?.resume(returning: element)
  }

  package func finish() {
    let taken = lock.withLock {
      isFinished = true
      return waiter.take()
    }
    taken?.resume(returning: nil)
  }

  package func next() async -> Element? {
    let number = lock.withLock {
      waiterNumber += 1
      return waiterNumber
    }
    defer { lock.noteResumption() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer = lock.withLock { () -> Element?? in
          if first < elements.count { return .some(take()) }
          // Accepting a second waiter would displace the first.
          guard !isFinished, waiter == nil, !Task.isCancelled else { return .some(nil) }
          waiter = continuation
          waiting = number
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      cancel(number)
    }
  }

  private var waiting = 0

  private func cancel(_ number: Int) {
    let taken = lock.withLock { waiting == number ? waiter.take() : nil }
    taken?.resume(returning: nil)
  }

  private func take() -> Element {
    let element = elements[first]
    first += 1
    if first == elements.count || first > capacity {
      elements.removeFirst(first)
      first = 0
    }
    return element
  }
}
