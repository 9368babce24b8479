// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import Synchronization

/// A thread that closes descriptors received from peers.
///
/// It is started on demand and ends when nothing is left to close. Descriptors waiting to be closed count toward the
/// process's limit and toward the lower limit of each sender. Descriptors of another user are closed on a thread of
/// their own, so that a user who makes closing slow does not delay others. A forked child has a closer of its own.
package final class DescriptorCloser: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  private enum Work {
    case close(Int32, (any AnyObject & Sendable)?)
    case call(@Sendable () -> Void)
  }

  /// The default closer, and the number of closers that have a thread.
  private final class Shared: Sendable {
    let closer = DescriptorCloser()
    // Relaxed when a thread is counted before it is created, and releasing when it ends.
    let running = Atomic<Int>(0)
  }

  private static let shared = PerProcess { Shared() }

  private let lock = Lock()
  private var waiting: [Work] = []
  private var isRunning = false

  package init() {}

  /// Closes a descriptor asynchronously, or synchronously if no thread can be created.
  ///
  /// - Parameters:
  ///   - closer: The closer to use. Defaults to `nil`, which means the default closer.
  ///   - charge: An object that is retained until the descriptor has been closed.
  package static func close(
    _ number: Int32, on closer: DescriptorCloser? = nil, keeping charge: (any AnyObject & Sendable)? = nil
  ) {
    (closer ?? shared.value.closer).enqueue(.close(number, charge))
  }

  /// Performs a function that closes descriptors asynchronously.
  package func perform(_ call: @escaping @Sendable () -> Void) { enqueue(.call(call)) }

  /// Whether nothing is waiting to be closed and no thread is running, for tests.
  package static var isIdle: Bool { shared.value.running.load(ordering: .acquiring) == 0 }

  private func enqueue(_ work: Work) {
    lock.lock()
    waiting.append(work)
    let needsThread = !isRunning
    isRunning = true
    lock.unlock()
    guard needsThread else { return }
    Self.shared.value.running.wrappingAdd(1, ordering: .relaxed)
    let context = Unmanaged.passRetained(self)
    do throws(SystemError) {
      _ = try SystemCall.threadCreate.make { crl_thread_create(0, Self.thread, context.toOpaque()) }
    } catch {
      context.release()
      // No thread could be created, so do the work on this one.
      doAll()
    }
  }

  private static let thread: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
    if let context { Unmanaged<DescriptorCloser>.fromOpaque(context).takeRetainedValue().doAll() }
    return nil
  }

  private func doAll() {
    while true {
      lock.lock()
      var works = Array(waiting.reversed())
      waiting = []
      if works.isEmpty { isRunning = false }
      lock.unlock()
      guard !works.isEmpty else { break }
      // One by one, so that each charge is released when its descriptor has been closed.
      while let work = works.popLast() {
        switch work {
        case .close(let number, let charge):
          _ = crl_close(number)
          withExtendedLifetime(charge) {}
        case .call(let call): call()
        }
      }
    }
    Self.shared.value.running.wrappingSubtract(1, ordering: .releasing)
  }
}
