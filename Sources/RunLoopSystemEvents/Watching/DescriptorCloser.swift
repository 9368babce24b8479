// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import Synchronization

/// A thread that closes what others have sent, made when there is something to close, ended when there is nothing left.
///
/// What waits for it are open descriptors, of which a process has a limited number, and each sender still fewer.
/// Another user's wait for a thread of their own, so that nobody else waits for what that user makes take long. A child
/// of a fork has a closer of its own.
package final class DescriptorCloser: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  private enum Work {
    case close(Int32, (any AnyObject & Sendable)?)
    case call(@Sendable () -> Void)
  }

  /// The one for everything that is on nobody else's, and how many have a thread.
  private final class Shared: Sendable {
    let closer = DescriptorCloser()
    // Relaxed where a thread is counted before it is made; where it ends, what it has done is released.
    let running = Atomic<Int>(0)
  }

  private static let shared = PerProcess { Shared() }

  private let lock = Lock()
  private var waiting: [Work] = []
  private var isRunning = false

  package init() {}

  /// Has a descriptor closed; it does not wait, unless no thread can be made.
  ///
  /// - Parameters:
  ///   - closer: Whose thread closes it; nil means the one for everything that has none of its own.
  ///   - charge: Is kept until the descriptor has been closed.
  package static func close(
    _ number: Int32, on closer: DescriptorCloser? = nil, keeping charge: (any AnyObject & Sendable)? = nil
  ) {
    (closer ?? shared.value.closer).enqueue(.close(number, charge))
  }

  /// Has something done that closes descriptors.
  package func perform(_ call: @escaping @Sendable () -> Void) { enqueue(.call(call)) }

  /// Whether there is nothing to close and no thread, for tests.
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
      // Late is better than never.
      doAll()
    }
  }

  private static let thread: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
    if let context { Unmanaged<DescriptorCloser>.fromOpaque(context).takeRetainedValue().doAll() }
    return nil
  }

  /// Does what there is to do, until there is nothing.
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
