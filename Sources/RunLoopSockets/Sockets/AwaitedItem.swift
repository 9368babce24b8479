// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// An item for which tasks wait.
protocol AwaitedItem: AnyObject, Sendable {
  /// Whether a task has ever waited.
  ///
  /// Any thread, without the item's lock.
  var hasBeenAwaited: Atomic<Bool> { get }

  /// Ends the waits of all tasks if the loops of the item have ended.
  func endWaitsIfLoopsHaveEnded()
}

extension AwaitedItem {
  var isAwaited: Bool { hasBeenAwaited.load(ordering: .sequentiallyConsistent) }
}

/// The task that waits for one thing, if there is one.
struct TaskWait<Value: Sendable> {
  private var continuation: CheckedContinuation<Value, any Error>?
  /// A task cancels its own wait alone.
  private var number: UInt64 = 0

  var isTaken: Bool { continuation != nil }

  mutating func begin(_ continuation: CheckedContinuation<Value, any Error>, _ number: UInt64) {
    self.continuation = continuation
    self.number = number
  }

  /// Ends the wait, for its task to be resumed without the lock.
  mutating func take() -> CheckedContinuation<Value, any Error>? {
    defer { continuation = nil }
    return continuation
  }

  /// The same if the wait has this number.
  mutating func take(_ number: UInt64) -> CheckedContinuation<Value, any Error>? {
    number == self.number ? take() : nil
  }

  /// Ends the wait with an error, which is to be done without the lock.
  mutating func takeFailing() -> ((any Error) -> Void)? { take().map { waiting in { waiting.resume(throwing: $0) } } }
}

/// Why a task cannot wait.
enum WaitRejection {
  /// Another waits for the same.
  case busy
  /// The threads of all loops that the item is in have ended.
  case loopsHaveEnded
}

/// An item of ours for which tasks wait on whatever threads they run, while it is in a loop.
protocol TaskItem: RegisteredItem {
  /// The number of the last wait.
  ///
  /// Under the lock.
  var lastWait: UInt64 { get set }

  /// A refusal in the item's own words.
  static func error(_ rejection: WaitRejection) -> any Error

  /// Ends all waits; each is to be called with an error, without the lock.
  ///
  /// Under the lock.
  func takeWaits() -> [(any Error) -> Void]
}

extension TaskItem {
  /// Suspends the task until whatever it waits for has arrived.
  ///
  /// - Parameters:
  ///   - path: Where the item keeps the wait.
  ///   - cancelled: What a task gets that is cancelled.
  ///   - answer: What is available without waiting; under the lock.
  ///   - changed: Does what is due when a wait has begun or was cancelled; under the lock.
  func wait<Value: Sendable>(
    _ path: any ReferenceWritableKeyPath<Self, TaskWait<Value>> & Sendable, cancelled: Value,
    unless answer: @Sendable () -> Result<Value, any Error>?, changed: @Sendable () -> Void
  ) async throws -> Value {
    let number = lock.withLock {
      lastWait += 1
      return lastWait
    }
    defer { lock.noteResumption() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        lock.lock()
        let result = rejection(path) ?? (Task.isCancelled ? .success(cancelled) : answer()) ?? endOfLoops()
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

  private func rejection<Value>(
    _ path: ReferenceWritableKeyPath<Self, TaskWait<Value>>
  ) -> Result<Value, any Error>? {
    self[keyPath: path].isTaken ? .failure(Self.error(.busy)) : nil
  }

  private func endOfLoops<Value>() -> Result<Value, any Error>? {
    // Before the loops are looked at: then either the task finds them over, or their end finds the task.
    hasBeenAwaited.store(true, ordering: .sequentiallyConsistent)
    return registrations.areOver ? .failure(Self.error(.loopsHaveEnded)) : nil
  }

  func endWaitsIfLoopsHaveEnded() {
    lock.lock()
    guard registrations.areOver else { return lock.unlock() }
    let waiting = takeWaits()
    lock.unlock()
    for fail in waiting { fail(Self.error(.loopsHaveEnded)) }
  }
}

/// Lives as long as an item is in a loop, and keeps the item.
///
/// Whoever waits for what nobody will serve is notified. As the last loop may let go of the item wherever somebody else
/// has just looked at it, under the item's lock, it is a task of its own that takes the lock.
final class Presence<Item: AwaitedItem>: Sendable {
  let item: Item

  init(_ item: Item) { self.item = item }

  deinit {
    // A task that begins to wait later than this finds the loops over.
    if item.isAwaited { Task.detached { [item] in item.endWaitsIfLoopsHaveEnded() } }
  }
}

extension Presence: CarriedItem where Item: CarriedItem {
  var keepAliveKind: KeepAliveKind { item.keepAliveKind }
  var keepAliveCode: UInt64 { item.keepAliveCode }
  var keepAliveDetail: String { item.keepAliveDetail }
  var keepAliveIdentity: AnyObject { item }
}
