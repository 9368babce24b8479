// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// Where an item keeps the tasks that wait for one thing.
protocol WaitPlace<Value>: SendableMetatype {
  associatedtype Value: Sendable

  /// Whether no other task may wait now.
  var isBusy: Bool { get }

  mutating func begin(_ continuation: CheckedContinuation<Value, any Error>, _ number: UInt64)

  /// Ends the wait with a number, for its task to be resumed without the lock: a task cancels its own wait alone.
  mutating func take(_ number: UInt64) -> CheckedContinuation<Value, any Error>?
}

/// The tasks that wait for room, in order.
struct RoomWaits: WaitPlace, Sendable {
  private var waiting: [(number: UInt64, continuation: CheckedContinuation<Void, any Error>)] = []

  var isTaken: Bool { count > 0 }
  var count: Int { waiting.count }
  var isBusy: Bool { false }

  mutating func begin(_ continuation: CheckedContinuation<Void, any Error>, _ number: UInt64) {
    waiting.append((number, continuation))
  }

  mutating func take(_ number: UInt64) -> CheckedContinuation<Void, any Error>? {
    waiting.firstIndex { $0.number == number }.map { waiting.remove(at: $0).continuation }
  }

  /// Ends the waits, for their tasks to be resumed without the lock; nil if there are none.
  mutating func take() -> RoomWaits? {
    guard isTaken else { return nil }
    defer { waiting = [] }
    return self
  }

  /// Takes the waits out; the closure that is returned ends them with an error, without the lock.
  mutating func takeFailing() -> ((any Error) -> Void)? { take().map { waits in { waits.resume(throwing: $0) } } }

  func resume() { for each in waiting { each.continuation.resume() } }

  func resume(throwing error: any Error) { for each in waiting { each.continuation.resume(throwing: error) } }
}

/// The task that waits for one thing, if there is one.
struct TaskWait<Value: Sendable>: WaitPlace {
  private var continuation: CheckedContinuation<Value, any Error>?
  private var number: UInt64 = 0

  var isTaken: Bool { continuation != nil }
  var isBusy: Bool { isTaken }

  mutating func begin(_ continuation: CheckedContinuation<Value, any Error>, _ number: UInt64) {
    self.continuation = continuation
    self.number = number
  }

  /// Ends the wait, for its task to be resumed without the lock.
  mutating func take() -> CheckedContinuation<Value, any Error>? {
    defer { continuation = nil }
    return continuation
  }

  mutating func take(_ number: UInt64) -> CheckedContinuation<Value, any Error>? {
    number == self.number ? take() : nil
  }

  /// Ends the wait with an error, which is to be done without the lock.
  mutating func takeFailing() -> ((any Error) -> Void)? { take().map { waiting in { waiting.resume(throwing: $0) } } }
}

extension CheckedContinuation {
  /// Resumes the task with the end, or with an error.
  func resume<Value>(atEnd error: (any Error)?) where T == Value?, E == any Error {
    if let error { resume(throwing: error) } else { resume(returning: nil) }
  }
}

/// Why a task cannot wait.
enum WaitRejection {
  /// Another waits for the same.
  case busy
  /// The item is in no loop.
  case noLoop
  /// The threads of all loops that the item is in have ended.
  case loopsHaveEnded
}

/// A kind of socket, for what names the kind in its types.
protocol SocketKind: BaseSocket {}

// Tasks wait on whatever threads they run, while the socket is in a loop.
extension SocketKind {
  /// Suspends the task until whatever it waits for has arrived.
  ///
  /// - Parameters:
  ///   - path: Where the item keeps the wait.
  ///   - cancelled: What a task gets that is cancelled.
  ///   - answer: What is available without waiting; under the lock.
  ///   - changed: Does what is due when a wait has begun or was cancelled; under the lock.
  func wait<Place: WaitPlace>(
    _ path: any ReferenceWritableKeyPath<Self, Place> & Sendable, cancelled: Place.Value,
    unless answer: @Sendable () -> Result<Place.Value, any Error>?, changed: @Sendable () -> Void
  ) async throws -> Place.Value {
    let number = lock.withLock {
      lastWait += 1
      return lastWait
    }
    defer { lock.noteResumption() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        lock.lock()
        let result = rejection(path) ?? (Task.isCancelled ? .success(cancelled) : answer()) ?? lackOfLoops()
        if result == nil {
          self[keyPath: path].begin(continuation, number)
          changed()
        }
        lock.unlock()
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      lock.lock()
      // A task that was rejected, or has yet to wait, leaves alone the one that waits.
      let waiting = self[keyPath: path].take(number)
      if waiting != nil { changed() }
      lock.unlock()
      waiting?.resume(returning: cancelled)
    }
  }

  private func rejection<Place: WaitPlace>(
    _ path: ReferenceWritableKeyPath<Self, Place>
  ) -> Result<Place.Value, any Error>? {
    self[keyPath: path].isBusy ? .failure(waitError(.busy)) : nil
  }
}

extension BaseSocket {
  /// Whether tasks of this process may wait.
  var isAwaited: Bool { !lock.isParents && hasBeenAwaited.load(ordering: .sequentiallyConsistent) }

  fileprivate func lackOfLoops<Value>() -> Result<Value, any Error>? {
    // Before the loops are looked at: then either the task finds them over, or their end finds the task.
    hasBeenAwaited.store(true, ordering: .sequentiallyConsistent)
    return registrations.lack.map { .failure(waitError($0)) }
  }

  /// Ends the waits of all tasks if the socket is in no loop, or its loops have ended.
  func endWaitsIfUnserved() {
    lock.lock()
    guard let lack = registrations.lack else { return lock.unlock() }
    let waiting = takeWaits()
    lock.unlock()
    for fail in waiting { fail(waitError(lack)) }
  }
}

/// Lives as long as a socket is in a loop, and keeps the socket.
///
/// A task that waits for what no loop will serve is notified. As the last loop may release the socket wherever another
/// thread has just looked at it, under the socket's lock, it is a task of its own that takes the lock.
final class Presence: Sendable {
  let item: BaseSocket

  init(_ item: BaseSocket) { self.item = item }

  deinit {
    // A task that begins to wait later than this finds the loops over.
    if item.isAwaited { Task.detached { [item] in item.endWaitsIfUnserved() } }
  }
}

extension Presence: CarriedItem {
  var keepAliveKind: KeepAliveKind { item.keepAliveKind }
  var keepAliveCode: UInt64 { item.keepAliveCode }
  var keepAliveDetail: String { item.keepAliveDetail }
  var keepAliveIdentity: AnyObject { item }
}
