// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A pool that keeps objects, and defers work, until the end of the turn.
///
/// A call-out hands the pool an object that nothing else retains yet, or work such as a clean-up. The pool releases
/// the objects and does the work in reverse order, on the loop's thread, when the loop is about to wait and when a
/// run ends. Anything added meanwhile is released at the same time.
///
/// ```swift
/// TurnPool.install(in: RunLoop.current)
/// // In any call-out:
/// let buffer = TurnPool.current?.keep(Buffer())
/// TurnPool.current?.onEndOfTurn { cache.trim() }
/// ```
///
/// A pool belongs to the thread of its loop, and cannot be passed to another thread.
///
/// The corresponding part of Apple's systems is the autorelease pool of the main run loop, which uses the same
/// orders: ``TurnOrder/poolPush`` and ``TurnOrder/poolPop``.
public struct TurnPool {
  private let stack: PoolStack

  /// Installs a pool for every turn of a loop, in the common modes.
  ///
  /// A pool is opened when a run begins, replaced before each wait, and closed when the run ends. Nested runs have
  /// their own pools. If it is installed during a run, on the loop's own thread, a pool is open immediately. Can be
  /// called from any thread. Has no effect if a pool is already installed, or if the loop's thread has ended.
  public static func install(in loop: RunLoop) {
    guard let stack = loop.attachment(PoolStack.self, orMake: PoolStack.init)?.attachment else { return }
    stack.observe(loop)
  }

  /// The pool that is open on the calling thread.
  ///
  /// It is `nil` unless a call of ``withPool(_:)`` is active, or a pool is installed in the thread's loop and the
  /// loop is running in a common mode.
  public static var current: TurnPool? {
    guard let stack = RunLoop.currentIfMade?.attachment(PoolStack.self), stack.isOpen else { return nil }
    return TurnPool(stack: stack)
  }

  /// Keeps an object alive until the end of the turn.
  ///
  /// - Returns: The object, which stays alive until then even if nothing else retains it.
  /// - Complexity: O(1) amortised, without allocating memory if an earlier turn kept as many entries.
  @discardableResult
  public func keep<T: AnyObject>(_ object: T) -> T {
    stack.append(.object(object))
    return object
  }

  /// Adds a closure to call at the end of the turn, in reverse order of addition.
  ///
  /// The closure may run the loop, add more to the pool, and open a pool. It is called once, on this thread, even
  /// if the thread ends before its turn does, unless the process ends as well.
  ///
  /// - Complexity: O(1) amortised.
  public func onEndOfTurn(_ work: @escaping () -> Void) { stack.append(.work(work)) }

  /// Calls a closure with a pool of its own, which is closed when the closure returns or throws.
  ///
  /// Use it in a turn that creates more objects than should be kept until the end of the turn, and on threads whose
  /// loop does not run. The calling thread's loop is created if there is none.
  ///
  /// - Returns: The closure's result.
  /// - Throws: The closure's error.
  ///
  /// The corresponding function of Apple's Swift is `autoreleasepool(invoking:)`.
  public static func withPool<R>(_ body: () throws -> R) rethrows -> R {
    // In the last destructors of a thread, its loop has ended. The pool then belongs to this call alone.
    let stack = RunLoop.current.attachment(PoolStack.self, orMake: PoolStack.init)?.attachment ?? PoolStack()
    let level = stack.push()
    defer { stack.pop(to: level) }
    return try body()
  }

  /// Returns how many pools were opened and closed on a loop, and how many are open.
  ///
  /// Must be called on the loop's thread.
  package static func counts(of loop: RunLoop) -> (pushes: Int, pops: Int, open: Int) {
    loop.attachment(PoolStack.self)?.counts ?? (0, 0, 0)
  }
}
