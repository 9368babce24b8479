// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC

/// Prevents a forked child from using its parent's loops.
///
/// A child has only one thread. Other threads of the parent may have held any lock of any loop at the fork, and the
/// parent's epoll sets and counters are open in the child too. The child's thread therefore gets its own loop, and
/// using one of the parent's loops is a fatal error with a message.
package struct ForkGeneration: Sendable {
  private let number = crl_fork_generation_get()

  /// The generation of objects created now.
  package static var current: ForkGeneration {
    _ = handlers
    return ForkGeneration()
  }

  /// Whether this process is the forked child of a process that used run loops.
  ///
  /// The main dispatch queue does not survive a fork.
  package static var isForkedChild: Bool { crl_fork_generation_get() != 0 }

  /// Whether this process is a descendant of the process to which this generation belongs.
  @inline(__always)
  package var isPast: Bool { number != crl_fork_generation_get() }

  /// Traps in a child that uses a loop of its parent.
  @inline(__always)
  func check() {
    if isPast { ForkGeneration.fail("a run loop of the process that it was forked from; RunLoop.current is its own") }
  }

  /// Traps in a child that uses a port, socket or source of its parent in a call that cannot throw.
  @inline(__always)
  package func checkItem() {
    if isPast { ForkGeneration.fail("a port, socket or source of the process that it was forked from") }
  }

  /// Traps in a child that waits for a thread of its parent, which does not exist in the child.
  @inline(__always)
  package func checkThread() {
    if isPast { ForkGeneration.fail("a thread of the process that it was forked from, which this process has not") }
  }

  @inline(never)
  private static func fail(_ what: StaticString) -> Never {
    // A precondition would print nothing in release builds.
    fatalError("process \(getpid()) uses \(what)")
  }

  /// Installed once, before the first loop is created.
  private static let handlers: Void = {
    let answer = pthread_atfork(
      {
        // Before other locks, for which the threads that it waits for may be waiting.
        crl_fork_begin()
        RunLoopRegistry.shared.prepareForFork()
      },
      {
        RunLoopRegistry.shared.finishForkInParent()
        crl_fork_end(0)
      },
      {
        crl_fork_end(1)
        crl_fork_generation_advance()
        crl_main_thread_watch()
        crl_instruments_forked()
        RunLoopRegistry.shared.finishForkInChild()
        RunLoop.forgetParentsLoops()
      })
    guard answer == 0 else { fatalError("no handlers for forks can be installed (error \(answer))") }
  }()
}
