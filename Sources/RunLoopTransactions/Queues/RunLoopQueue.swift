// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Elements that a loop consumes a few at a time, before it waits.
///
/// Work that is cheap for each element and comes in large numbers is spread over the turns of a loop, so that each turn
/// stays short. Without a budget a turn consumes a batch; with a budget it goes on, a batch at a time, until the budget
/// is used up, and always consumes at least one batch. While elements are waiting, the loop makes one pass after the
/// other and does not sleep; timers and sources have their turn between two batches.
///
/// ```swift
/// let queue = RunLoopQueue<Node>(loop: .main, budget: .milliseconds(2)) { node, isDrained in
///   node.apply()
///   if isDrained { window.setNeedsDisplay() }
/// }
/// queue.enqueue(node)                // any thread
/// ```
///
/// The elements are consumed in the common modes, in the order in which they arrived. A queue does not keep its loop
/// alive. It ends with its last reference, or with the loop's thread; the remaining elements are then released.
///
/// The corresponding class of Texture is `ASRunLoopQueue`.
public final class RunLoopQueue<Element: Sendable>: Sendable {
  private let core: RunLoopQueueCore<Element>

  /// Makes an empty queue.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - loop: The loop on whose thread the elements are consumed.
  ///   - order: The order of the observer, among those that are called before the wait.
  ///   - batch: How many elements are consumed before the clock is read; less than one counts as one.
  ///   - budget: How long the elements of one turn may take, by the loop's clock. Nil, zero or less means one batch.
  ///   - unique: Whether an element that is waiting already is rejected. Objects are compared by identity, and other
  ///     elements by equality if they are `Hashable`; otherwise no two elements are the same.
  ///   - consume: Called on the loop's thread with each element, and whether the queue is then empty. It may add
  ///     elements, and run the loop: nothing is consumed meanwhile.
  public init(
    loop: RunLoop, order: Int = 0, batch: Int = 1, budget: Duration? = nil, unique: Bool = true,
    _ consume: @escaping @Sendable (Element, _ isDrained: Bool) -> Void
  ) {
    core = RunLoopQueueCore(
      loop: loop, limits: QueueLimits(batch: batch, budget: budget.map { Int64(saturating: $0) }), unique: unique,
      consume)
    core.start(order: order)
  }

  deinit { core.end() }

  /// Adds an element at the end.
  ///
  /// A sleeping loop is woken. Can be called from any thread.
  ///
  /// - Returns: False if the element was rejected: an equal one is waiting, or the loop's thread has ended.
  /// - Complexity: O(1) amortised.
  @discardableResult
  public func enqueue(_ element: Element) -> Bool { core.enqueue(element) }

  /// How many elements are waiting.
  ///
  /// Can be read from any thread.
  public var count: Int { core.count }

  /// Whether no element is waiting.
  ///
  /// Can be read from any thread.
  public var isEmpty: Bool { count == 0 }
}
