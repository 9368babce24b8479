// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Objects that live, and work that waits, until the end of the turn.
///
/// A call-out that returns an object which nobody holds yet, or that leaves something to be cleaned up, hands it to the
/// pool of the turn. The pool releases the objects and does the work when the loop is about to wait and when a run
/// ends, the last first, on the loop's thread. What is added meanwhile is released at the same time.
///
/// ```swift
/// TurnPool.install(in: RunLoop.current)
/// // In any call-out:
/// let buffer = TurnPool.current?.keep(Buffer())
/// TurnPool.current?.onEndOfTurn { cache.trim() }
/// ```
///
/// A pool belongs to the thread of its loop, and the value cannot leave it.
///
/// The corresponding part of Apple's systems is the autorelease pool of the main run loop, with the same orders:
/// ``TurnOrder/poolPush`` and ``TurnOrder/poolPop``.
public struct TurnPool {
  private let stack: PoolStack

  /// Makes every turn of a loop have a pool, in the common modes.
  ///
  /// A pool is opened when a run begins, replaced before each wait, and closed when the run ends; nested runs have
  /// pools of their own. If the loop's own thread installs it within a run, a pool is open at once. Can be called from
  /// any thread. Calling it again has no effect, and it has none on a loop whose thread has ended.
  public static func install(in loop: RunLoop) {
    guard let stack = loop.attachment(PoolStack.self, orMake: PoolStack.init)?.attachment else { return }
    stack.observe(loop)
  }

  /// The pool that is open on the calling thread.
  ///
  /// It is nil if the thread's loop has no pool installed, no run of it in a common mode is active, and no
  /// ``withPool(_:)`` is active.
  public static var current: TurnPool? {
    guard let stack = RunLoop.currentIfMade?.attachment(PoolStack.self), stack.isOpen else { return nil }
    return TurnPool(stack: stack)
  }

  /// Keeps an object until the end of the turn.
  ///
  /// - Returns: The object, which can be used until then by code that does not hold it.
  /// - Complexity: O(1) amortised; without an allocation if an earlier turn has kept as much.
  @discardableResult
  public func keep<T: AnyObject>(_ object: T) -> T {
    stack.append(.object(object))
    return object
  }

  /// Calls a closure at the end of the turn, after work that is added later and before work that was added earlier.
  ///
  /// The work may run the loop, add more to the pool, and open a pool. It is called once, on this thread, even if the
  /// thread ends before its turn does, unless the process ends with it.
  ///
  /// - Complexity: O(1) amortised.
  public func onEndOfTurn(_ work: @escaping () -> Void) { stack.append(.work(work)) }

  /// Opens a pool, calls a closure, and closes the pool, whether the closure returns or throws.
  ///
  /// For a loop within a turn that makes more objects than should be kept until the turn's end, and for threads whose
  /// loop does not run. It opens a pool on the calling thread, whose loop is made if there was none.
  ///
  /// - Returns: The closure's result.
  /// - Throws: The closure's error.
  ///
  /// The corresponding function of Apple's Swift is `autoreleasepool(invoking:)`.
  public static func withPool<R>(_ body: () throws -> R) rethrows -> R {
    // In the last destructors of a thread the loop has ended: then the pool is this call's alone, and nobody else's.
    let stack = RunLoop.current.attachment(PoolStack.self, orMake: PoolStack.init)?.attachment ?? PoolStack()
    let level = stack.push()
    defer { stack.pop(to: level) }
    return try body()
  }

  /// How many pools were opened and closed on a loop, and how many are open.
  ///
  /// The loop's thread only.
  package static func counts(of loop: RunLoop) -> (pushes: Int, pops: Int, open: Int) {
    loop.attachment(PoolStack.self)?.counts ?? (0, 0, 0)
  }
}
