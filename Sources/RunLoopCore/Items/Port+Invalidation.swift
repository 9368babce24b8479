// SPDX-License-Identifier: Apache-2.0

extension Port {
  /// Calls a closure on the invalidating thread when the port becomes invalid, or immediately if it already is.
  ///
  /// The closure is called once, with no locks held. It is released after the call, when the observer is cancelled, or
  /// with the port. Can be called from any thread. The corresponding Core Foundation function is
  /// `CFMessagePortSetInvalidationCallBack`.
  @discardableResult
  public final func observeInvalidation(_ body: @escaping @Sendable (Port) -> Void) -> InvalidationObserver {
    let observer = InvalidationObserver(of: self, body)
    if !invalidationObservers.insert(observer) { observer.call(self) }
    return observer
  }

  /// An observer of a port's invalidation.
  public final class InvalidationObserver: @unchecked Sendable {
    // Sendable: the lock guards the closure; the reference to the port is written once.
    private let lock = Lock()
    private var body: (@Sendable (Port) -> Void)?
    private weak var port: Port?

    fileprivate init(of port: Port, _ body: @escaping @Sendable (Port) -> Void) {
      self.port = port
      self.body = body
    }

    /// Releases the closure so that it is not called.
    ///
    /// A call that has already begun continues. Can be called from any thread. Calling it again has no effect.
    public func cancel() {
      // Released here, after the lock.
      withExtendedLifetime(takeBody()) {}
      port?.invalidationObservers.remove(self)
    }

    fileprivate func call(_ port: Port) { takeBody()?(port) }

    private func takeBody() -> (@Sendable (Port) -> Void)? {
      lock.withLock { body.take() }
    }
  }
}

/// The observers to notify when a port becomes invalid, in the order in which they were added.
final class InvalidationObservers: @unchecked Sendable {
  // Sendable: the lock guards the variables.
  private let lock = Lock()
  private var observers: ContiguousArray<Port.InvalidationObserver> = []
  private var isOver = false

  /// Adds an observer, and returns `false` if the observers have already been notified.
  fileprivate func insert(_ observer: Port.InvalidationObserver) -> Bool {
    lock.withLock {
      if !isOver { observers.append(observer) }
      return !isOver
    }
  }

  /// Removes an observer, which the caller must retain.
  fileprivate func remove(_ observer: Port.InvalidationObserver) {
    lock.withLock { observers.removeAll { $0 === observer } }
  }

  func announce(_ port: Port) {
    let observers = lock.withLock {
      isOver = true
      return exchange(&self.observers, with: [])
    }
    for observer in observers { observer.call(port) }
  }
}
