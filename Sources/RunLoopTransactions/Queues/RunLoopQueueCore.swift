// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// State shared by a queue and its loop's observer, so that the loop does not retain the queue.
final class RunLoopQueueCore<Element: Sendable>: LoopAttachment, @unchecked Sendable {
  // Sendable: the lock guards the variables.

  private let loop: RunLoop
  private let limits: QueueLimits
  private let unique: Bool
  private let lock = Lock()
  @exclusivity(unchecked) private var elements = WaitingElements<Element>()
  /// Whether the queue accepts elements.
  @exclusivity(unchecked) private var isOpen = true
  @exclusivity(unchecked) private var observer: RunLoop.Observer?
  @exclusivity(unchecked) private var body: Body?

  /// Wraps the closure, so that passing it to a generic function creates no reabstraction thunk.
  private struct Body {
    let consume: @Sendable (Element, Bool) -> Void
  }

  init(
    loop: RunLoop, limits: QueueLimits, unique: Bool, _ consume: @escaping @Sendable (Element, Bool) -> Void
  ) {
    self.loop = loop
    self.limits = limits
    self.unique = unique
    body = Body(consume: consume)
  }

  func start(order: Int) {
    guard loop.attach(self) else { return end() }
    let observer = RunLoop.Observer(activities: .beforeWaiting, order: order) { [weak self] _, _ in self?.makeTurn() }
    lock.withLock { self.observer = observer }
    loop.add(observer, forMode: .common)
  }

  var count: Int { lock.withLock { elements.count } }

  func enqueue(_ element: Element) -> Bool {
    let key = unique ? ElementKey(element) : nil
    while true {
      lock.lock()
      // Comparing may run user code, so it happens without the lock, and is repeated if elements were added meanwhile.
      let candidates = elements.candidates(for: key)
      let version = elements.version
      lock.unlock()
      if let key, candidates.contains(where: { $0.matches(key) }) { return false }
      lock.lock()
      guard isOpen else {
        lock.unlock()
        return false
      }
      guard key == nil || version == elements.version else {
        lock.unlock()
        continue
      }
      elements.append(element, key)
      let isFirst = elements.count == 1
      lock.unlock()
      if isFirst { loop.wakeUp() }
      return true
    }
  }

  /// Consumes the elements of one turn.
  ///
  /// Called on the loop's thread.
  private func makeTurn() {
    let begin = limits.budget == nil ? Tick.distantPast : loop.clockNow
    var consumed = 0
    while limits.allowsMore(after: consumed, { loop.clockNow - begin }) {
      guard let next = takeFirst() else { return }
      consumed += 1
      noteCall(of: next.body)
      next.body.consume(next.element, next.isDrained)
    }
    if count > 0 { loop.wakeUp() }
  }

  private func takeFirst() -> (element: Element, isDrained: Bool, body: Body)? {
    lock.withLock {
      guard let body, let element = elements.takeFirst() else { return nil }
      return (element, elements.count == 0, body)
    }
  }

  /// Closes the queue and releases the remaining elements.
  func end() {
    lock.lock()
    isOpen = false
    let left = (elements, body, observer)
    elements = WaitingElements()
    body = nil
    observer = nil
    lock.unlock()
    left.2?.invalidate()
    loop.detach(self)
  }

  func loopDidEnd() { end() }
}
