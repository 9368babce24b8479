// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A queue of elements that a run loop consumes in small batches before it waits.
///
/// Use a queue for work that is cheap per element but arrives in large numbers: it is spread over the turns of the
/// loop, so that each turn stays short. Without a budget, a turn consumes one batch. With a budget, it consumes
/// batches until the budget is used up, and always at least one. While elements are waiting, the loop runs one pass
/// after another without sleeping, and timers and sources are handled in between.
///
/// ```swift
/// let queue = RunLoopQueue<Node>(loop: .main, budget: .milliseconds(2)) { node, isDrained in
///   node.apply()
///   if isDrained { window.setNeedsDisplay() }
/// }
/// queue.enqueue(node)                // any thread
/// ```
///
/// Elements are consumed in the common modes, in the order in which they were added. The queue does not keep its loop
/// alive. When its last reference is released or the loop's thread ends, the remaining elements are released.
///
/// The corresponding class of Texture is `ASRunLoopQueue`.
public final class RunLoopQueue<Element: Sendable>: Sendable {
  private let core: RunLoopQueueCore<Element>

  /// Creates an empty queue.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - loop: The loop on whose thread the elements are consumed.
  ///   - order: The order of the observer that consumes the elements, among those called before the loop waits.
  ///   - batch: The number of elements to consume before the clock is read. Values below 1 count as 1.
  ///   - budget: How long a turn may spend on elements, by the loop's clock. If `nil`, zero or negative, a turn
  ///     consumes one batch.
  ///   - unique: Whether to reject an element that is already waiting. Objects are compared by identity, and other
  ///     elements by equality if they are `Hashable`; all others are considered distinct.
  ///   - consume: A closure called on the loop's thread with each element and whether the queue is then empty. It
  ///     may add elements and run the loop; no other element is consumed until it returns.
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

  /// Adds an element to the end of the queue.
  ///
  /// Wakes the loop if it is sleeping. Can be called from any thread.
  ///
  /// - Returns: `false` if the element was rejected because an equal one is waiting or the loop's thread has ended.
  /// - Complexity: O(1) amortised.
  @discardableResult
  public func enqueue(_ element: Element) -> Bool { core.enqueue(element) }

  /// The number of waiting elements.
  ///
  /// Can be read from any thread.
  public var count: Int { core.count }

  /// Whether no element is waiting.
  ///
  /// Can be read from any thread.
  public var isEmpty: Bool { count == 0 }
}
