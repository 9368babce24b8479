// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// A place where an item stores the tasks that wait for one event.
protocol WaitPlace<Value>: SendableMetatype {
  associatedtype Value: Sendable

  /// Whether no further task may wait now.
  var isBusy: Bool { get }

  mutating func begin(_ continuation: CheckedContinuation<Value, any Error>, _ number: UInt64)

  /// Removes the wait with a number, so that a task can only cancel its own. Resume the task without the lock.
  mutating func take(_ number: UInt64) -> CheckedContinuation<Value, any Error>?
}

/// The tasks that are waiting for room, in order.
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

  /// Removes all waits, or returns `nil` if there are none; resume the tasks without the lock.
  mutating func take() -> RoomWaits? {
    guard isTaken else { return nil }
    defer { waiting = [] }
    return self
  }

  /// Removes all waits, and returns a closure that fails them; call it without the lock.
  mutating func takeFailing() -> ((any Error) -> Void)? { take().map { waits in { waits.resume(throwing: $0) } } }

  func resume() { for each in waiting { each.continuation.resume() } }

  func resume(throwing error: any Error) { for each in waiting { each.continuation.resume(throwing: error) } }
}

struct TaskWait<Value: Sendable>: WaitPlace {
  private var continuation: CheckedContinuation<Value, any Error>?
  private var number: UInt64 = 0

  var isTaken: Bool { continuation != nil }
  var isBusy: Bool { isTaken }

  mutating func begin(_ continuation: CheckedContinuation<Value, any Error>, _ number: UInt64) {
    self.continuation = continuation
    self.number = number
  }

  /// Removes the wait; resume the task without the lock.
  mutating func take() -> CheckedContinuation<Value, any Error>? {
    defer { continuation = nil }
    return continuation
  }

  mutating func take(_ number: UInt64) -> CheckedContinuation<Value, any Error>? {
    number == self.number ? take() : nil
  }

  /// Removes the wait, and returns a closure that fails it; call it without the lock.
  mutating func takeFailing() -> ((any Error) -> Void)? { take().map { waiting in { waiting.resume(throwing: $0) } } }
}

extension CheckedContinuation {
  /// Resumes the task with the end of the stream, or with an error.
  func resume<Value>(atEnd error: (any Error)?) where T == Value?, E == any Error {
    if let error { resume(throwing: error) } else { resume(returning: nil) }
  }
}

/// A reason why a task cannot wait.
enum WaitRejection {
  case busy
  case noLoop
  /// The threads of all loops that the item is in have ended.
  case loopsHaveEnded
}

/// A concrete kind of socket, for declarations whose types depend on `Self`.
protocol SocketKind: BaseSocket {}

// Tasks can wait on any thread while the socket is in a loop.
extension SocketKind {
  /// Suspends the task until the event it waits for has arrived.
  ///
  /// - Parameters:
  ///   - path: Where the item stores the wait.
  ///   - cancelled: The result for a task that is cancelled.
  ///   - answer: Returns a result that is available without waiting. Called with the lock held.
  ///   - changed: Updates the item after a wait has begun or was cancelled. Called with the lock held.
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
      // The number distinguishes this wait from that of another task.
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
  /// Whether a task of this process has ever waited.
  var isAwaited: Bool { !lock.isParents && hasBeenAwaited.load(ordering: .sequentiallyConsistent) }

  fileprivate func lackOfLoops<Value>() -> Result<Value, any Error>? {
    // Store before checking the loops, so that either the task sees that they are over, or their end sees the task.
    hasBeenAwaited.store(true, ordering: .sequentiallyConsistent)
    return registrations.lack.map { .failure(waitError($0)) }
  }

  /// Fails the waits of all tasks if the socket is in no loop, or its loops have ended.
  func endWaitsIfUnserved() {
    lock.lock()
    guard let lack = registrations.lack else { return lock.unlock() }
    let waiting = takeWaits()
    lock.unlock()
    for fail in waiting { fail(waitError(lack)) }
  }
}

/// Retains a socket, and lives as long as the socket is in a loop.
///
/// Its deinitializer fails tasks that no loop will serve. The last loop may release it on a thread that already holds
/// the socket's lock, so the lock is taken in a separate task.
final class Presence: Sendable {
  let item: BaseSocket

  init(_ item: BaseSocket) { self.item = item }

  deinit {
    // A task that starts waiting later checks the loops itself.
    if item.isAwaited { Task.detached { [item] in item.endWaitsIfUnserved() } }
  }
}

extension Presence: CarriedItem {
  var keepAliveKind: KeepAliveKind { item.keepAliveKind }
  var keepAliveCode: UInt64 { item.keepAliveCode }
  var keepAliveDetail: String { item.keepAliveDetail }
  var keepAliveIdentity: AnyObject { item }
}
