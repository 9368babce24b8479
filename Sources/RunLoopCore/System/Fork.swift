// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC

/// Keeps a forked child away from the loops of its parent.
///
/// A child has one thread. The other threads may have held any lock of any loop when it was made, and the parent's
/// epoll sets and counters are open in it too. So its thread gets a loop of its own, and code that uses one of the
/// parent's loops is stopped with a message, as with any precondition.
package struct ForkGeneration: Sendable {
  private let number = crl_fork_generation_get()

  /// The generation of objects that are made now.
  package static var current: ForkGeneration {
    _ = handlers
    return ForkGeneration()
  }

  /// Whether this process is the child of one that has used run loops.
  ///
  /// The main dispatch queue does not survive a fork.
  package static var isForkedChild: Bool { crl_fork_generation_get() != 0 }

  /// Whether this process is a child of the process whose generation this was.
  @inline(__always)
  package var isPast: Bool { number != crl_fork_generation_get() }

  /// Stops a child that uses a loop of its parent.
  @inline(__always)
  func check() {
    if isPast { ForkGeneration.fail("a run loop of the process that it was forked from; RunLoop.current is its own") }
  }

  /// Stops a child that uses a port, socket or source of its parent in a call that has no error.
  @inline(__always)
  package func checkItem() {
    if isPast { ForkGeneration.fail("a port, socket or source of the process that it was forked from") }
  }

  /// Stops a child that waits for a thread of its parent, which does not exist in it.
  @inline(__always)
  package func checkThread() {
    if isPast { ForkGeneration.fail("a thread of the process that it was forked from, which this process has not") }
  }

  @inline(never)
  private static func fail(_ what: StaticString) -> Never {
    // In release builds a precondition prints nothing.
    fatalError("process \(getpid()) uses \(what)")
  }

  /// Installed once, before the first loop is made.
  private static let handlers: Void = {
    let answer = pthread_atfork(
      { RunLoopRegistry.shared.prepareForFork() },
      { RunLoopRegistry.shared.finishForkInParent() },
      {
        crl_fork_generation_advance()
        crl_main_thread_watch()
        crl_instruments_forked()
        RunLoopRegistry.shared.finishForkInChild()
        RunLoop.forgetParentsLoops()
      })
    guard answer == 0 else { fatalError("no handlers for forks can be installed (error \(answer))") }
  }()
}
