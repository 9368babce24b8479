// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore
import RunLoopSockets
import Synchronization

/// One request from its start to its end, through redirects, retries and pauses.
///
/// What it does belongs to the loader's thread. What any thread asks of it is posted there; that it was cancelled or is
/// held is noted at once, so that nothing is delivered afterwards.
final class Transfer: @unchecked Sendable {
  // Sendable: what changes is used by the loader's thread alone, but for the two atomic marks. Nothing is called while
  // a variable is being changed, so that those of each request are not checked for overlapping accesses.

  let core: ClientCore
  let request: HTTP.Request
  let receiver: any Receiver
  /// How this request is made.
  let settings: OwnConfiguration
  /// Where the client has it among those that have not ended; the client's.
  @exclusivity(unchecked) var place: Int?
  @exclusivity(unchecked) private(set) var state = OperationState()
  @exclusivity(unchecked) private(set) var attempt: Attempt?

  let isCancelled = Atomic<Bool>(false)
  /// Whether the user wants to hold it.
  let isHeldByUser = Atomic<Bool>(false)
  @exclusivity(unchecked) var holds = BodyHolds()

  // How it goes on.
  @exclusivity(unchecked) var hop: HTTP.Hop?
  /// What belongs to the exchange that is being made; each exchange begins with a new one.
  @exclusivity(unchecked) var progress = Exchange.Progress()
  @exclusivity(unchecked) var authentication = Authentication()
  /// The request's own choice of a proxy.
  @exclusivity(unchecked) var proxyChoice: ProxyChoice?
  @exclusivity(unchecked) var response: HTTP.Response?
  @exclusivity(unchecked) var limit: Int64?
  @exclusivity(unchecked) var retries = 0
  /// Why the request was sent again, each time.
  @exclusivity(unchecked) var resends: [HTTP.ResendReason] = []
  /// Whether the next exchange uses no kept connection.
  @exclusivity(unchecked) private var wantsFresh = false
  @exclusivity(unchecked) var lookup: HostLookup?
  /// What interceptors are asked; nil before, and if there are none.
  @exclusivity(unchecked) var interceptions: Interceptions?
  /// Who gets interim responses.
  @exclusivity(unchecked) var onInterim: (@Sendable (HTTP.Response) -> Void)?
  /// Each time it was sent, if the configuration asks for that.
  @exclusivity(unchecked) var attempts: [HTTP.AttemptReport] = []
  @exclusivity(unchecked) var sent: (count: Int64, of: Int64?) = (0, nil)

  // When it goes on or ends.
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

  // Events.

  /// Applies an event and does what follows.
  func apply(_ event: OperationState.Event) {
    // Whatever its end would be: it was cancelled before.
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
    // The library asks with the next bytes.
    case .hold: break
    case .release: core.later { [self] in release() }
    case .close: close()
    case .finish: finish(state.failure)
    }
  }

  /// Begins its life with an event: a start, a pause or a cancellation.
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

  // Any thread.

  /// Ends it; from now on nothing but its end is reported.
  func cancel() {
    isCancelled.store(true, ordering: .releasing)
    core.post { [self] in apply(.cancel) }
  }

  func setHeld(_ isHeld: Bool) {
    isHeldByUser.store(isHeld, ordering: .releasing)
    core.post { [self] in updateHold() }
  }

  /// The receiver takes bytes again.
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
      // Nobody would resume it, unless that was asked for in the same breath.
      core.post { [self] in if state.stage == .paused { apply(.clientStopped) } }
    }
  }

  func resume() {
    core.post { [self] in
      if state.stage == .paused, progress.hasAsked { resends.append(.resumption) }
      apply(.resume)
    }
  }

  // The loader's thread.

  private func begin(after delay: Duration) {
    progress = Exchange.Progress(isFresh: wantsFresh)
    wantsFresh = false
    lastActivity = core.now
    if delay > .zero {
      beginDue = core.now + Int64(saturating: delay)
    } else {
      // Behind what is being done: this may be called within the library.
      core.tryLater(self)
    }
  }

  /// Asks the host, if that is still wanted.
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

  /// The library has let go of an attempt that is ours.
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

// What happens to an attempt. Within the library, but for the last.
extension Transfer {
  func noteActivity() { lastActivity = core.now }
  func noteActivity(at time: Tick) { lastActivity = time }

  func noteSent(_ count: Int64, of total: Int64?) {
    sent = (count, total)
    noteState()
  }

  func hasConnected() { apply(.connected) }

  /// The library sends the request again by itself.
  func noteResend(_ reason: HTTP.ResendReason) { resends.append(reason) }

  /// An attempt has ended; nothing of it comes any more.
  func hasEnded(_ ended: Attempt, _ error: HTTP.Error?, timings: HTTP.Timings) {
    guard ended === attempt else { return }
    attempt = nil
    noteActivity()
    progress.timings = timings
    noteEnd(of: ended)
    if let error, [.cannotConnect, .timedOut, .proxyFailed].contains(error.code), ended.requests == 0 {
      // The name may have other addresses by now.
      let target = ended.exchange.target
      core.names.forget(target.host, target.port)
      if let proxy = ended.exchange.proxy, !proxy.looksUpHosts {
        // Such a proxy was given the host's address.
        core.names.forget(ended.exchange.address.host, ended.exchange.address.port)
      }
    }
    switch progress.plan {
    case nil:
      if ended.needsFresh, !progress.isFresh {
        // The connection was no good, and nothing was sent on it.
        wantsFresh = true
        return apply(.retry(after: .zero))
      }
      if let reason = ended.resend, mayResendUnprocessed, isRepeatable || !ended.hasSentSome {
        return resend(reason, isFresh: reason == .connectionEnded)
      }
      handle(error ?? HTTP.Error(.connectionLost, "the connection ended before the answer"))
    case .deliver:
      // A server may answer before it has read everything, and go.
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

  /// Ends, or tries again where that may help.
  ///
  /// Whoever cannot take back what it has been given is not given a second head after the first, either.
  private func handle(_ error: HTTP.Error) {
    guard let hop, HTTP.Retry.codes.contains(error.code), hop.method.isIdempotent, hop.allowsResending,
      retries < configuration.retry.maximumCount, response == nil || receiver.canRestart || state.part.canGoOn
    else { return fail(error) }
    resend(.retry, after: nextDelay())
  }

  /// How often a request is sent again whose server rejects it unprocessed, or whose connections end.
  static let mostResends = 64

  /// Whether it may be sent once more for such a reason.
  var mayResendUnprocessed: Bool {
    resends.count { $0 == .unprocessed || $0 == .connectionEnded } < Self.mostResends
  }

  /// Sends the request again.
  func resend(_ reason: HTTP.ResendReason, isFresh: Bool = false, after delay: Duration = .zero) {
    resends.append(reason)
    wantsFresh = isFresh
    apply(.retry(after: delay))
  }

  /// Whether the body can be read again.
  var isRepeatable: Bool { hop?.body?.isRepeatable ?? true }

  func nextDelay() -> Duration {
    retries += 1
    return configuration.retry.delay(before: retries, chance: Double.random(in: 0..<1))
  }

  /// Notes what was passed over in the response that is delivered.
  func note(_ oddities: [HTTP.Oddity]) {
    guard !oddities.isEmpty, let known = response?.oddities else { return }
    response?.oddities += oddities.filter { !known.contains($0) }.prefix(max(0, HTTP.Oddity.limit - known.count))
  }

  /// Notes in the response what is known at the end of an attempt.
  func noteEnd(of attempt: Attempt) {
    response?.timings = progress.timings
    response?.resends = resends
    if !attempts.isEmpty { response?.attempts = attempts }
    guard case .deliver? = progress.plan else { return }
    let reader = attempt.reader
    note(reader.oddities)
    if let trailers = reader.trailers { response?.trailers = trailers }
  }

  /// Whether the head of an answer has arrived.
  var hasAnswer: Bool { progress.plan != nil }

  /// Whether all that the head announces has arrived.
  var hasWholeAnswer: Bool {
    guard case .deliver? = progress.plan, let head = progress.head else { return false }
    return !hasBody(head) || progress.wireCount == head.length
  }

  /// Whether a body follows a head.
  func hasBody(_ head: Head) -> Bool { hop?.method != .head && head.status != 204 && head.status != 304 }

  /// Does without sending the rest of a request whose answer is there.
  func endEarly() {
    guard let attempt else { return }
    core.drop(attempt)
    leaveAttempt()
    endBody()
  }

  /// The whole body has arrived.
  func endBody() {
    if let decoder = progress.decoder,
      !decoder.isComplete || !decoder.hasBegun && progress.head?.endsWithConnection == true
    {
      return apply(.fail(HTTP.Error(.cannotDecode, "the coded body has no end")))
    }
    if progress.decoder?.hasRest == true { note([.bytesAfterEnd]) }
    // The library counts by the length that the head has. A part may have none, and says where it ends.
    if let total = state.total, state.received < total {
      let isCut = progress.head?.endsWithConnection == true
      return handle(
        HTTP.Error(isCut ? .connectionLost : .badServerResponse, "the part ended before the end that its head says"))
    }
    apply(.end)
  }
}
