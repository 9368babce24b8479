// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// MARK: - Making requests. Can be called from any thread.
extension HTTP.Connection {
  /// Makes the request that a response leads to, such as a redirect.
  func follow(_ next: HTTP.Request, from generation: Int, _ change: (inout Asking) -> Void) {
    lock.lock()
    guard phase == .running, asking.generation == generation else { return lock.unlock() }
    asking.generation += 1
    asking.request = next
    asking.authorization = nil
    change(&asking)
    isAwaitingAnswer = false
    let (old, left) = (asking.transfer, mail)
    asking.transfer = nil
    asking.hasBegun = false
    mail = ConnectionMail()
    let request = asking.request
    lock.unlock()
    // The old transfer runs to completion, so that its connection can be reused.
    old?.receiverHasRoom()
    withExtendedLifetime(left) {}
    ask(request, isFirst: false)
  }

  func ask(_ request: HTTP.Request, isFirst: Bool) {
    let (delegate, generation, redirects) = lock.withLock { (self.delegate, asking.generation, asking.redirects) }
    guard let delegate else { return }
    var prepared: HTTP.Request
    do throws(HTTP.Error) {
      prepared = try delegate.connectionWillAsk(request, isFirst: isFirst)
    } catch {
      post(.end(error.of(url: WebAddress.safeText(of: request.url), bytesReceived: 0)), generation)
      return
    }
    if let authorization = lock.withLock({ asking.authorization }) {
      prepared.headers["Authorization"] = authorization
    }
    var plain = request
    plain.body = prepared.body
    let receiver = ConnectionReceiver(self, plain, redirects, generation)
    let transfer = Transfer(core, prepared, receiver, configuration: configuration)
    receiver.transfer = transfer
    lock.lock()
    guard phase == .running, asking.generation == generation else { return lock.unlock() }
    asking.transfer = transfer
    let wasPaused = isPaused
    lock.unlock()
    if let error = core.begin(transfer, with: wasPaused ? .pause : .start) {
      post(.end(error.of(url: WebAddress.safeText(of: request.url), bytesReceived: 0)), generation)
      return
    }
    // Calls made in the meantime did not find a transfer registered with the client.
    lock.lock()
    let isLate = phase != .running || asking.transfer !== transfer
    if !isLate { asking.hasBegun = true }
    let isPaused = isPaused
    lock.unlock()
    if isLate { return transfer.cancel() }
    if isPaused != wasPaused { if isPaused { transfer.pause() } else { transfer.resume() } }
  }

  func take(
    _ asked: Challenge, _ address: WebAddress, _ response: HTTP.Response, _ delegate: any ConnectionDelegate,
    _ generation: Int
  ) {
    lock.lock()
    guard phase == .running, asking.generation == generation else { return lock.unlock() }
    if authentication.origin != address.origin { authentication.failures = 0 }
    // A credential that was sent with a stale nonce was not rejected.
    if asking.authorization != nil, !asked.isStale || authentication.challenge?.isStale != false {
      authentication.failures += 1
      authentication.credential = nil
    }
    let known = authentication.origin == address.origin ? authentication.credential : nil
    let failures = authentication.failures
    isAwaitingAnswer = true
    self.asked = (asked, address, response)
    lock.unlock()
    let challenge = HTTP.ConnectionChallenge(asked, address, response, failures, self, generation: generation)
    if let known { challenge.answer(.credential(known)) } else { delegate.connection(isAsked: challenge) }
  }

  func answer(_ answer: HTTP.ConnectionChallenge.Answer, _ generation: Int) {
    lock.lock()
    guard phase == .running, isAwaitingAnswer, asking.generation == generation, let asked else { return lock.unlock() }
    // From here on, further responses to the challenge are ignored.
    self.asked = nil
    let next = asking.request
    switch answer {
    case .credential(let credential):
      authentication.credential = credential
      authentication.origin = asked.address.origin
      authentication.answer(asked.challenge)
      var answering = authentication
      // `isAwaitingAnswer` stays set until the next request is made, so the events after the challenge are not
      // delivered.
      lock.unlock()
      // This may read a file.
      let authorization = answering.authorization(next.method, asked.address.target, next.body)
      return follow(next, from: generation) { $0.authorization = authorization }
    case .proceed:
      isAwaitingAnswer = false
      mail.prepend(.response(asked.response))
    case .cancel:
      isAwaitingAnswer = false
      mail = ConnectionMail()
      mail.append(.end(HTTP.Error(.cancelled, "the server's challenge was cancelled")))
      asking.generation += 1
    }
    lock.unlock()
    call()
  }
}

// MARK: - Events of the transfers. Called on the loader's thread, or on the thread that starts the transfer.
extension HTTP.Connection {
  /// Queues an event, unless its request has been replaced by a later one.
  ///
  /// - Returns: Whether more can be received now.
  @discardableResult
  func post(_ event: ConnectionMail.Event, _ generation: Int) -> Bool {
    lock.lock()
    guard phase == .running, asking.generation == generation else {
      lock.unlock()
      return true
    }
    mail.append(event)
    let isFull = mail.isFull
    lock.unlock()
    call()
    return !isFull
  }

  /// Whether a request has been superseded or the connection has ended.
  func isOver(_ generation: Int) -> Bool { lock.withLock { phase != .running || asking.generation != generation } }

  /// Queues a response that sets cookies for the cookie sources.
  func postCookies(of response: HTTP.Response, _ generation: Int) {
    lock.lock()
    guard phase == .running, asking.generation == generation else { return lock.unlock() }
    cookies.append(response)
    let places = executor == nil ? places : []
    lock.unlock()
    for place in places { place.sources[1].post { [self] in deliverCookies(to: place) } }
  }
}
