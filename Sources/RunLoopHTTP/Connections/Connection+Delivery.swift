// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

// MARK: - Scheduling. Can be called from any thread.
extension HTTP.Connection {
  func place(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Place {
    Place(
      loop: loop, mode: mode,
      sources: [core.multiplexer(loop, [mode]), core.multiplexer(loop, [mode], isForCookies: true)])
  }

  /// Schedules the callbacks on a loop in a mode, in addition to any others.
  package func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
    let place = place(loop, mode)
    lock.lock()
    guard phase != .ended, !places.contains(where: place.isSame) else { return lock.unlock() }
    places.append(place)
    let sources = phase == .running && executor == nil ? place.sources : []
    for source in sources { source.noteUser() }
    lock.unlock()
    for source in sources { source.settle() }
    callAfresh()
  }

  /// Removes the callbacks from a loop in a mode.
  package func unschedule(from loop: RunLoop, forMode mode: RunLoop.Mode) {
    lock.lock()
    guard let index = places.firstIndex(where: { $0.loop == loop && $0.mode == mode }) else { return lock.unlock() }
    let place = places.remove(at: index)
    let sources = phase == .running && executor == nil ? place.sources : []
    for source in sources { source.dropUser() }
    lock.unlock()
    for source in sources { source.settle() }
    callAfresh()
  }

  /// Uses an executor that runs one block at a time instead of the loops, or the loops again if it is nil.
  package func setExecutor(_ executor: Executor?) {
    lock.lock()
    guard phase != .ended else { return lock.unlock() }
    let before = self.executor
    self.executor = executor
    executorNumber += 1
    let isOther = (before == nil) != (executor == nil)
    let sources = phase == .running && isOther ? places.flatMap(\.sources) : []
    for source in sources { if executor == nil { source.noteUser() } else { source.dropUser() } }
    lock.unlock()
    withExtendedLifetime(before) {}
    for source in sources { source.settle() }
    callAfresh()
  }

  /// Requests a callback again after places were added or removed, because an earlier request may never be served.
  private func callAfresh() {
    lock.withLock { isPosted = false }
    call()
  }

  /// Requests a callback if there is something to deliver.
  func call() {
    lock.lock()
    guard phase == .running, !isPosted, !isDelivering, hasMail else { return lock.unlock() }
    isPosted = true
    let (executor, number, places) = (executor, executorNumber, places)
    lock.unlock()
    if let executor { return executor { [self] in deliver(to: nil, number) } }
    for place in places { place.sources[0].post { [self] in deliver(to: place) } }
  }

  /// Whether there is anything to deliver; requires the lock.
  private var hasMail: Bool { !isAwaitingAnswer && !isPaused && !(mail.isEmpty && cookies.isEmpty) }

  /// Whether a place, or the executor with this number, may deliver.
  ///
  /// Requires the lock. A place whose loop has ended may deliver only if all loops have ended; the loader's thread
  /// calls it then.
  private func mayDeliver(to place: Place?, _ number: Int = 0) -> Bool {
    guard phase == .running else { return false }
    guard let place else { return executor != nil && executorNumber == number }
    guard executor == nil, places.contains(where: place.isSame) else { return false }
    return !place.loop.hasEnded || places.allSatisfy(\.loop.hasEnded)
  }

  /// Delivers the events queued at this time, while later ones wait for the next pass of the loop.
  private func deliver(to place: Place?, _ number: Int = 0) {
    lock.lock()
    guard mayDeliver(to: place, number) else { return lock.unlock() }
    isPosted = false
    guard !isDelivering else { return lock.unlock() }
    isDelivering = true
    var rest = mail.count
    while mayDeliver(to: place, number), hasMail, rest > 0 || !cookies.isEmpty, let delegate {
      let cookies = cookies
      self.cookies = []
      guard cookies.isEmpty else {
        lock.unlock()
        for response in cookies { delegate.connection(storeCookiesOf: response) }
        lock.lock()
        continue
      }
      guard let (event, hasRoom) = mail.next() else { break }
      rest -= 1
      let transfer = hasRoom ? asking.transfer : nil
      let generation = asking.generation
      lock.unlock()
      transfer?.receiverHasRoom()
      deliver(event, to: delegate, generation)
      lock.lock()
    }
    isDelivering = false
    lock.unlock()
    call()
  }

  /// Stores the pending cookies, for which there is a separate source that is signaled before the delegate's.
  func deliverCookies(to place: Place) {
    lock.lock()
    guard mayDeliver(to: place), let delegate else { return lock.unlock() }
    let cookies = cookies
    self.cookies = []
    lock.unlock()
    for response in cookies { delegate.connection(storeCookiesOf: response) }
  }

  private func deliver(_ event: ConnectionMail.Event, to delegate: any ConnectionDelegate, _ generation: Int) {
    switch event {
    case .response(let response): delegate.connection(didReceive: response)
    case .data(let bytes): delegate.connection(didReceive: bytes)
    case .sent(let count, let total): delegate.connection(didSend: count, of: total)
    case .redirect(let next, let response):
      guard let next = delegate.connection(willFollow: next, after: response) else {
        return delegate.connection(didReceive: response)
      }
      follow(next, from: generation) { $0.redirects += 1 }
    case .challenge(let asked, let address, let response): take(asked, address, response, delegate, generation)
    case .end(let error):
      lock.lock()
      guard phase == .running else { return lock.unlock() }
      let left = end()
      lock.unlock()
      delegate.connectionDidEnd(error)
      left.leave()
    }
  }
}
