// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Local {
  /// Registers a name and creates a port whose messages are received as a sequence, ``requests``.
  ///
  /// A thread of this package reads them. The parameters and errors are those of
  /// ``init(name:directory:limits:accepts:handler:)``, and ``MessagePortError/runLoop(_:)`` if the process has no
  /// descriptor left for reading.
  public convenience init(
    name: String, directory: MessagePort.Directory = .user, limits: MessagePort.Limits = MessagePort.Limits(),
    accepts: @escaping @Sendable (MessagePort.Credentials) -> Bool = { $0.isSameUser }
  ) throws(MessagePortError) {
    let queue = RequestQueue()
    try self.init(name, directory, limits, accepts, queue) { queue.append($0) }
    let loop = ServiceThread.loop
    let source = RunLoop.DescriptorSource(descriptor: watched.number, events: .readable) { [weak self] _, _ in
      self?.serve()
    }
    _ = withRegistrations { $0.insert(source, in: loop, .default) }
    do { try loop.add(source, forMode: .default) } catch { throw .runLoop(error) }
  }

  /// The messages that arrive, in order.
  ///
  /// Each is received by one of the iterating tasks. A one-way message counts as received when a task takes it, a
  /// request when it is replied to. The sequence ends when the port is invalidated. Messages that were not taken by
  /// then are dropped, and their senders are notified. For a port with a handler, the sequence is empty.
  public var requests: Requests { Requests(queue: queue) }

  /// The messages of a port, as an asynchronous sequence.
  public struct Requests: AsyncSequence, Sendable {
    fileprivate let queue: RequestQueue?

    /// Creates an iterator.
    public func makeAsyncIterator() -> Iterator { Iterator(queue: queue) }

    /// An iterator that waits for each message.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate let queue: RequestQueue?

      /// Waits for the next message, or returns `nil` if the port is invalid or the task was cancelled.
      public func next() async -> MessagePort.Request? { await queue?.next() }
    }
  }
}

/// A queue of messages waiting for tasks, or of tasks waiting for messages, bounded by the limits of the connections.
final class RequestQueue: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.
  private typealias Taker = CheckedContinuation<MessagePort.Request?, Never>

  private let lock = Lock()
  private var requests: [MessagePort.Request] = []
  private var first = 0
  private var takers: [(number: UInt64, taker: Taker)] = []
  private var cancelled: Set<UInt64> = []
  private var lastNumber: UInt64 = 0
  private var isOver = false

  func append(_ request: MessagePort.Request) {
    lock.lock()
    guard !isOver else { return lock.unlock() }
    guard takers.isEmpty else {
      let taker = takers.removeFirst().taker
      lock.unlock()
      request.noteTaken()
      return taker.resume(returning: request)
    }
    requests.append(request)
    lock.unlock()
  }

  func next() async -> MessagePort.Request? {
    let number = lock.withLock {
      lastNumber += 1
      return lastNumber
    }
    let request = await withTaskCancellationHandler {
      await withCheckedContinuation { (taker: Taker) in take(number, taker) }
    } onCancel: {
      cancel(number)
    }
    // A cancellation that came too late has left its number behind.
    lock.withLock { _ = cancelled.remove(number) }
    return request
  }

  private func take(_ number: UInt64, _ taker: Taker) {
    lock.lock()
    if cancelled.remove(number) != nil || isOver {
      lock.unlock()
      return taker.resume(returning: nil)
    }
    guard first < requests.count else {
      takers.append((number, taker))
      return lock.unlock()
    }
    let request = requests[first]
    first += 1
    if first == requests.count {
      requests.removeAll(keepingCapacity: true)
      first = 0
    } else if first >= 256 {
      requests.removeFirst(first)
      first = 0
    }
    lock.unlock()
    request.noteTaken()
    taker.resume(returning: request)
  }

  private func cancel(_ number: UInt64) {
    lock.lock()
    guard let index = takers.firstIndex(where: { $0.number == number }) else {
      // The wait has not begun yet or is over. Numbers are not reused.
      if !isOver { cancelled.insert(number) }
      return lock.unlock()
    }
    let taker = takers.remove(at: index).taker
    lock.unlock()
    taker.resume(returning: nil)
  }

  func end() {
    lock.lock()
    isOver = true
    let takers = takers
    self.takers = []
    let dropped = requests[first...]
    requests = []
    first = 0
    lock.unlock()
    for request in dropped { request.reject(.invalidated) }
    for taker in takers { taker.taker.resume(returning: nil) }
  }
}
