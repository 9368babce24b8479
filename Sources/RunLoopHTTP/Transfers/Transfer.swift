// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore
import RunLoopSockets
import Synchronization

/// A request from its start to its end, through redirects, retries and pauses.
///
/// Its work is done on the loader's thread. Calls from other threads are posted there, but a cancellation or a hold is
/// recorded immediately, so that nothing is delivered afterwards.
final class Transfer: @unchecked Sendable {
  // Sendable: mutable state is used only by the loader's thread, except for the two atomic flags. No variable is
  // mutated across a call to other code, so the variables that every request uses skip the exclusivity check.

  let core: ClientCore
  let request: HTTP.Request
  let receiver: any Receiver
  let settings: OwnConfiguration
  /// The index in the list of unfinished transfers, which the client manages.
  @exclusivity(unchecked) var place: Int?
  @exclusivity(unchecked) private(set) var state = OperationState()
  @exclusivity(unchecked) private(set) var attempt: Attempt?

  let isCancelled = Atomic<Bool>(false)
  /// Whether the user has paused reading.
  let isHeldByUser = Atomic<Bool>(false)
  @exclusivity(unchecked) var holds = BodyHolds()

  // The current state of the request.
  @exclusivity(unchecked) var hop: HTTP.Hop?
  /// The state of the current exchange, replaced when another one starts.
  @exclusivity(unchecked) var progress = Exchange.Progress()
  @exclusivity(unchecked) var authentication = Authentication()
  /// The proxy chosen by the request itself.
  @exclusivity(unchecked) var proxyChoice: ProxyChoice?
  @exclusivity(unchecked) var response: HTTP.Response?
  @exclusivity(unchecked) var limit: Int64?
  @exclusivity(unchecked) var retries = 0
  /// The reason for each time the request was sent again.
  @exclusivity(unchecked) var resends: [HTTP.ResendReason] = []
  /// Whether the next exchange must use a new connection.
  @exclusivity(unchecked) private var wantsFresh = false
  @exclusivity(unchecked) var lookup: HostLookup?
  /// The state of the interceptors; nil before they are called, and if there are none.
  @exclusivity(unchecked) var interceptions: Interceptions?
  @exclusivity(unchecked) var onInterim: (@Sendable (HTTP.Response) -> Void)?
  /// A report on each attempt, if the configuration asks for reports.
  @exclusivity(unchecked) var attempts: [HTTP.AttemptReport] = []
  @exclusivity(unchecked) var sent: (count: Int64, of: Int64?) = (0, nil)

  // Deadlines.
  @exclusivity(unchecked) var lastActivity = Tick.never
  @exclusivity(unchecked) var totalDue = Tick.never
  @exclusivity(unchecked) var beginDue = Tick.never

  init(
    _ core: ClientCore, _ request: HTTP.Request, _ receiver: any Receiver, configuration: OwnConfiguration? = nil
  ) {
    self.core = core
    settings = configuration ?? core.settings
    self.request = request
    self.receiver = receiver
  }

  var configuration: HTTP.Configuration { settings.value }
  var hasBeenCancelled: Bool { isCancelled.load(ordering: .acquiring) }
  var isWantedHeld: Bool { isHeldByUser.load(ordering: .acquiring) }

  // MARK: Events

  func apply(_ event: OperationState.Event) {
    // A cancellation takes precedence over any other end.
    if event.isEnd, hasBeenCancelled { return applyAsItIs(.cancel) }
    applyAsItIs(event)
  }

  private func applyAsItIs(_ event: OperationState.Event) {
    guard !state.isFinished else { return }
    let actions = state.apply(event)
    if !actions.isEmpty { for action in actions { perform(action) } }
    guard !state.isFinished else { return }
    noteState()
    if event.mayHasten { core.note(deadline: deadline) }
  }

  private func noteState() {
    receiver.note(
      state.stage,
      HTTP.Progress(sent: sent.count, totalToSend: sent.of, received: state.received, total: state.total))
  }

  private func perform(_ action: OperationState.Action) {
    switch action {
    case .begin(let delay): begin(after: delay)
    case .drop: drop()
    // A hold takes effect when libcurl delivers the next bytes.
    case .hold: break
    case .release: core.later { [self] in release() }
    case .close: close()
    case .finish: finish(state.failure)
    }
  }

  /// Begins with an event: a start, a pause or a cancellation.
  func begin(with event: OperationState.Event) {
    if let total = configuration.totalTimeout { totalDue = core.now + Int64(saturating: total) }
    limit = request.maximumBodySize ?? configuration.maximumBodySize ?? receiver.defaultLimit
    if hasBeenCancelled { return apply(.cancel) }
    do throws(HTTP.Error) {
      if let kept = try receiver.prepare() { state = OperationState(kept: kept) }
    } catch {
      return apply(.fail(error))
    }
    apply(event)
  }

  // MARK: Can be called from any thread

  /// Cancels the request; afterwards only its end is reported.
  func cancel() {
    isCancelled.store(true, ordering: .releasing)
    core.post { [self] in apply(.cancel) }
  }

  func setHeld(_ isHeld: Bool) {
    isHeldByUser.store(isHeld, ordering: .releasing)
    core.post { [self] in updateHold() }
  }

  /// Called when the receiver accepts bytes again.
  func receiverHasRoom() {
    core.post { [self] in
      holds.remove(.receiver)
      updateHold()
    }
  }

  func pause() {
    core.post { [self] in
      apply(.pause)
      guard state.stage == .paused, core.isDraining() else { return }
      // The request would never be resumed, unless a resume was requested right after the pause.
      core.post { [self] in if state.stage == .paused { apply(.clientStopped) } }
    }
  }

  func resume() {
    core.post { [self] in
      if state.stage == .paused, progress.hasAsked { resends.append(.resumption) }
      apply(.resume)
    }
  }

  // MARK: Used only on the loader's thread

  private func begin(after delay: Duration) {
    progress = Exchange.Progress(isFresh: wantsFresh)
    wantsFresh = false
    lastActivity = core.now
    if delay > .zero {
      beginDue = core.now + Int64(saturating: delay)
    } else {
      // Deferred, because this may be called from inside libcurl.
      core.tryLater(self)
    }
  }

  /// Makes the request now, if it is still wanted.
  func goOnTrying() {
    guard state.stage == .resolving, attempt == nil, lookup == nil, interceptions?.isAsking != true else {
      return
    }
    tryNow()
  }

  func drop() {
    beginDue = .never
    lookup?.cancel()
    lookup = nil
    interceptions?.cancel()
    holds.formIntersection(.shown)
    if let attempt { core.drop(attempt) }
    attempt = nil
  }

  func start(_ attempt: Attempt) {
    self.attempt = attempt
    progress.hasAsked = true
    if let wait = settings.connectionWait, !attempt.hasBegun {
      progress.waitDue = core.now + wait
      core.note(deadline: progress.waitDue)
    }
    core.start(attempt)
  }

  /// Forgets the current attempt after libcurl has released it.
  func leaveAttempt() { attempt = nil }

  private func close() {
    if receiver.closesAtOnce { return apply(.closed) }
    do throws(HTTP.Error) {
      let isDone = try receiver.close { [weak self] error in
        self?.core.post { [weak self] in self?.apply(error.map { .fail($0) } ?? .closed) }
      }
      if isDone { apply(.closed) }
    } catch {
      apply(.fail(error))
    }
  }

  private func finish(_ error: HTTP.Error?) {
    core.unregister(self)
    noteState()
    if error == nil, let response {
      receiver.finish(.success(response))
    } else {
      let error = error ?? HTTP.Error(.badServerResponse, "there is no answer")
      let url = hop?.address.safeText ?? WebAddress.safeText(of: request.url)
      var told = error.of(url: url, bytesReceived: state.received)
      told.attempts = attempts
      receiver.finish(.failure(told))
    }
    core.hasEnded(self, error)
  }

  func forgetKept() { state.forget() }
}

// MARK: - Events of an attempt. Called from inside libcurl, except for `hasEnded`.
extension Transfer {
  func noteActivity() { lastActivity = core.now }
  func noteActivity(at time: Tick) { lastActivity = time }

  func noteSent(_ count: Int64, of total: Int64?) {
    sent = (count, total)
    noteState()
  }

  func hasConnected() { apply(.connected) }

  /// Records that libcurl sends the request again by itself.
  func noteResend(_ reason: HTTP.ResendReason) { resends.append(reason) }

  /// Called when an attempt has ended, after which it reports nothing more.
  func hasEnded(_ ended: Attempt, _ error: HTTP.Error?, timings: HTTP.Timings) {
    guard ended === attempt else { return }
    attempt = nil
    noteActivity()
    progress.timings = timings
    noteEnd(of: ended)
    if let error, [.cannotConnect, .timedOut, .proxyFailed].contains(error.code), ended.requests == 0 {
      // The name may resolve to other addresses by now.
      let target = ended.exchange.target
      core.names.forget(target.host, target.port)
      if let proxy = ended.exchange.proxy, !proxy.looksUpHosts {
        // The host's address was sent to such a proxy.
        core.names.forget(ended.exchange.address.host, ended.exchange.address.port)
      }
    }
    switch progress.plan {
    case nil:
      if ended.needsFresh, !progress.isFresh {
        // The connection was unusable, and nothing was sent on it.
        wantsFresh = true
        return apply(.retry(after: .zero))
      }
      if let reason = ended.resend, mayResendUnprocessed {
        return resend(reason, isFresh: reason == .connectionEnded)
      }
      handle(error ?? HTTP.Error(.connectionLost, "the connection ended before the answer"))
    case .deliver:
      // A server may respond before it has read the whole request, and close the connection.
      if let error, !(hasWholeAnswer && error.code == .connectionLost) { return handle(error) }
      if !holds.isEmpty, progress.decoder != nil || holds.contains(.review) {
        progress.hasEndedHeld = true
      } else {
        endBody()
      }
    case .leaveToLibrary where ended.needsBodyForProxy && authentication.ofProxy == nil:
      authentication.ofProxy = Challenge.best(of: progress.head?.headers ?? [:], "Proxy-Authenticate").map {
        Int($0.scheme == "basic" ? clc_basic : clc_digest)
      }
      if authentication.ofProxy == nil { goOn(.leaveToLibrary) } else { resend(.challenge) }
    case .some(let plan): goOn(plan)
    }
  }

  /// Retries the request if that may help; otherwise ends it with an error.
  ///
  /// A receiver that cannot discard what it has received must not receive another response's headers either.
  private func handle(_ error: HTTP.Error) {
    guard let hop, HTTP.Retry.codes.contains(error.code), hop.method.isIdempotent, hop.allowsResending,
      retries < configuration.retry.maximumCount, response == nil || receiver.canRestart || state.part.canGoOn
    else { return fail(error) }
    resend(.retry, after: nextDelay())
  }

  /// The maximum number of times an unprocessed request, or one whose connection ended, is sent again.
  static let mostResends = 64

  /// Whether the request may be sent again for such a reason.
  var mayResendUnprocessed: Bool {
    resends.count { $0 == .unprocessed || $0 == .connectionEnded } < Self.mostResends
  }

  func resend(_ reason: HTTP.ResendReason, isFresh: Bool = false, after delay: Duration = .zero) {
    resends.append(reason)
    wantsFresh = isFresh
    apply(.retry(after: delay))
  }

  func nextDelay() -> Duration {
    retries += 1
    return configuration.retry.delay(before: retries, chance: Double.random(in: 0..<1))
  }

  func note(_ oddities: [HTTP.Oddity]) {
    guard !oddities.isEmpty, let known = response?.oddities else { return }
    response?.oddities += oddities.filter { !known.contains($0) }.prefix(max(0, HTTP.Oddity.limit - known.count))
  }

  /// Updates the response with the information available at the end of an attempt.
  func noteEnd(of attempt: Attempt) {
    response?.timings = progress.timings
    response?.resends = resends
    if !attempts.isEmpty { response?.attempts = attempts }
    guard case .deliver? = progress.plan else { return }
    let reader = attempt.reader
    note(reader.oddities)
    if let trailers = reader.trailers { response?.trailers = trailers }
  }

  /// Whether the headers of a response have arrived.
  var hasAnswer: Bool { progress.plan != nil }

  /// Whether the complete body, as announced by the headers, has arrived.
  var hasWholeAnswer: Bool {
    guard case .deliver? = progress.plan, let head = progress.head else { return false }
    return !hasBody(head) || progress.wireCount == head.length
  }

  /// Whether a response with these headers has a body.
  func hasBody(_ head: Head) -> Bool { hop?.method != .head && head.status != 204 && head.status != 304 }

  /// Ends the request without sending the rest of its body, because the response is complete.
  func endEarly() {
    guard let attempt else { return }
    core.drop(attempt)
    leaveAttempt()
    endBody()
  }

  /// Called when the complete body has arrived.
  func endBody() {
    if let decoder = progress.decoder,
      !decoder.isComplete || !decoder.hasBegun && progress.head?.endsWithConnection == true
    {
      return apply(.fail(HTTP.Error(.cannotDecode, "the coded body has no end")))
    }
    if progress.decoder?.hasRest == true { note([.bytesAfterEnd]) }
    // libcurl checks the length in the headers. A partial response without one is checked against its range here.
    if let total = state.total, state.received < total {
      let isCut = progress.head?.endsWithConnection == true
      return handle(
        HTTP.Error(isCut ? .connectionLost : .badServerResponse, "the part ended before the end that its head says"))
    }
    apply(.end)
  }
}
