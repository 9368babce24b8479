// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// Asking. Any thread.
extension HTTP.Connection {
  /// Makes a request after an answer that leads to it.
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
    // It comes to its end, so that its connection can be used again.
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
    // What was asked for meanwhile did not find a transfer that the client knows.
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
    if asking.authorization != nil {
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
    // Nobody else answers now.
    self.asked = nil
    let next = asking.request
    switch answer {
    case .credential(let credential):
      authentication.credential = credential
      authentication.origin = asked.address.origin
      authentication.answer(asked.challenge)
      var answering = authentication
      // It is awaited until the next request is made: what follows the challenge in the mail is nobody's.
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

// What its transfers report. The loader's thread, or the one that starts it.
extension HTTP.Connection {
  /// Notes something of a request that is still being made.
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

  /// Whether nothing of a request is of interest any more.
  func isOver(_ generation: Int) -> Bool { lock.withLock { phase != .running || asking.generation != generation } }

  /// Brings an answer that sets cookies to the sources for them.
  func postCookies(of response: HTTP.Response, _ generation: Int) {
    lock.lock()
    guard phase == .running, asking.generation == generation else { return lock.unlock() }
    cookies.append(response)
    let places = executor == nil ? places : []
    lock.unlock()
    for place in places { place.sources[1].post { [self] in deliverCookies(to: place) } }
  }
}
