// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// MARK: - Responses. Called from inside libcurl, except where noted.
extension Transfer {
  /// The maximum number of bytes read from the body of an intermediate response to keep its connection reusable.
  static let drainLimit = 64 * 1024
  /// The maximum number of the program's credentials that a server may reject.
  static let mostFailures = 10
  /// The maximum time spent reading the body of an intermediate response, in nanoseconds.
  static let drainTime: Int64 = 1_000_000_000

  /// Called when the headers of a response have arrived.
  func take(_ head: Head, from attempt: Attempt) throws(HTTP.Error) {
    guard let hop else { return }
    if configuration.storesCookies {
      let cookies = core.jar.take(head.headers, from: hop.address)
      if !cookies.isEmpty { receiver.note(cookies) }
    }
    if ![401, 407, .misdirectedRequest].contains(head.status) { authentication.isAccepted = true }
    let plan = try decide(head, hop, attempt)
    progress.plan = plan
    progress.head = head
    switch plan {
    case .deliver: if !review(head, hop, attempt) { try begin(head, hop, attempt) }
    case .leaveToLibrary: break
    case .follow, .authenticate, .again, .complete, .withoutExpectation, .misdirected:
      progress.drainDue = core.now + Self.drainTime
      core.note(deadline: deadline)
    }
  }

  func takeInterim(_ reader: HeadReader) {
    guard let onInterim, let hop, !hasBeenCancelled else { return }
    onInterim(HTTP.Response(reader.interim, of: hop))
  }

  private func decide(_ head: Head, _ hop: HTTP.Hop, _ attempt: Attempt) throws(HTTP.Error) -> Exchange.Plan {
    if let next = try hop.next(after: head.status, head.headers, maximum: settings.value.maximumRedirects) {
      return .follow(next)
    }
    if head.status == 407, attempt.isAskedByProxy { return .leaveToLibrary }
    if head.status == 417, hop.headers["Expect"] != nil { return .withoutExpectation }
    if head.status == 401, hop.headers["Authorization"] == nil,
      let asked = Challenge.best(of: head.headers, body: hop.body),
      try answers(asked, head, hop)
    {
      return .authenticate(asked)
    }
    // The server is not configured for this host on this connection, and has not processed the request.
    if head.status == .misdirectedRequest, hop.allowsResending, !progress.isFresh, mayResendUnprocessed {
      return .misdirected
    }
    // A server that sends 408 has waited too long for a request, possibly for one it expected before this one.
    if HTTP.Retry.isForRetry(head.status) || head.status == .requestTimeout && attempt.isReused,
      hop.method.isIdempotent, hop.allowsResending, retries < configuration.retry.maximumCount
    {
      let asked = HTTP.Retry.retryAfter(head.headers, now: WebDate.now)
      if asked.map({ $0 <= configuration.retry.maximumRetryAfter }) ?? true {
        return .again(after: asked.map { max($0, .zero) } ?? .zero)
      }
    }
    if let range = attempt.exchange.range { return try check(head, range) }
    if head.status == 206, hop.headers["Range"] == nil, configuration.strict || !head.isWhole {
      throw HTTP.Error(.badServerResponse, "a part has arrived that nobody has asked for")
    }
    return .deliver
  }

  /// Whether to respond to a challenge, for which it stores the credential to use.
  private func answers(_ asked: Challenge, _ head: Head, _ hop: HTTP.Hop) throws(HTTP.Error) -> Bool {
    let isKnown = authentication.credential != nil && authentication.origin == hop.address.origin
    // A credential sent to this origin was rejected, unless only the nonce was stale. After it was accepted for an
    // earlier part of the body, the nonce may be stale for the next one, which not every server reports.
    if isKnown, let challenge = authentication.challenge {
      if authentication.isAccepted || asked.isStale && !challenge.isStale { return true }
      authentication.failures += 1
    }
    guard receiver.answersChallenges, authentication.failures < Self.mostFailures else {
      guard authentication.failures == 0 else {
        throw HTTP.Error(.authenticationFailed, "the server has not accepted the credential")
      }
      return isKnown
    }
    let wanted = receiver.answer(
      HTTP.AuthenticationChallenge(
        scheme: asked.scheme, realm: asked.parameters["realm"] ?? "", origin: hop.address.origin,
        failureCount: authentication.failures,
        proposed: isKnown && authentication.failures == 0 ? authentication.credential : nil,
        response: HTTP.Response(head, of: hop)))
    guard let wanted, wanted.origin == nil || wanted.origin == hop.address.origin else { return false }
    guard wanted.isSendable else {
      throw HTTP.Error(.invalidRequest, "the credential has a control character")
    }
    authentication.credential = wanted
    authentication.origin = hop.address.origin
    return true
  }

  /// Checks whether a response continues where the last one ended.
  private func check(_ head: Head, _ range: Int64) throws(HTTP.Error) -> Exchange.Plan {
    func mismatch(_ detail: String) -> HTTP.Error { HTTP.Error(.resumeMismatch, detail) }
    let kept = state.kept
    let content = head.headers["Content-Range"].flatMap(ContentRange.init)
    switch head.status {
    case 206:
      guard let content, let bounds = content.bounds else { throw mismatch("the part does not say which one it is") }
      guard bounds.lowerBound == range else {
        throw mismatch("the part begins at \(bounds.lowerBound), not at \(range)")
      }
      guard content.total == nil || content.total == kept.total else { throw mismatch("the whole has another length") }
      guard bounds.upperBound + 1 == kept.total else { throw mismatch("the part does not reach the end") }
      guard head.length == nil || head.length == bounds.upperBound - range + 1 else {
        throw HTTP.Error(.badServerResponse, "the length is not that of the part")
      }
      // With `If-Range`, a server may omit the `Content-Encoding` of the complete body.
      guard head.codings.isEmpty || head.codings == kept.codings else { throw mismatch("the part is coded") }
      guard kept.validator?.isContradicted(by: head.headers) != true else { throw mismatch("the body has changed") }
      return .deliver
    case 416:
      guard kept.total == range, content?.total == nil || content?.total == range else {
        throw mismatch("the server has no such part")
      }
      return .complete
    default:
      guard receiver.canRestart else { throw mismatch("the server does not go on with the body") }
      return .deliver
    }
  }

  /// Whether a response continues what was received before.
  func isContinued(_ head: Head, _ attempt: Attempt) -> Bool { attempt.exchange.range != nil && head.status == 206 }

  /// Begins to deliver a response.
  ///
  /// - Parameter changed: The interceptors' replacement for the response's status and headers.
  func begin(
    _ head: Head, _ hop: HTTP.Hop, _ attempt: Attempt, as changed: HTTP.Response? = nil
  ) throws(HTTP.Error) {
    let hasBody = hasBody(head)
    let isContinued = isContinued(head, attempt)
    var decoded = hasBody && decodes(head, hop, attempt) ? head.codings : []
    let unknown = configuration.strict ? [] : decoded.filter(ContentCoding.isUnknown)
    decoded.removeAll { unknown.contains($0) }
    progress.decoder = try decoder(of: decoded)
    let isDecoded = progress.decoder != nil
    var part = OperationState.Part()
    if isContinued {
      part = state.kept
      part.base = part.received
    } else {
      part.isDecoded = isDecoded
      part.codings = head.codings
      if head.status == 200, hop.method == .get {
        part.validator = Validator(head.headers)
        part.total = hasBody ? head.length : nil
      } else if hasBody {
        part.total = head.length
      }
      if isDecoded { part.total = nil }
    }
    if let limit, hasBody, !isDecoded, let length = head.length, part.base + length > limit {
      throw HTTP.Error(.tooLarge, "the body has \(part.base + length) bytes, and \(limit) are allowed")
    }
    // The program sees the first response, which this one continues.
    if !isContinued || response == nil {
      response = changed ?? HTTP.Response(head, of: hop)
      response?.resends = resends
      response?.decodedFrom = isDecoded ? decoded : []
    }
    if progress.hasEndedHeld { noteEnd(of: attempt) }
    note(unknown.map { .unknownCoding($0) })
    if head.status == 206, hop.headers["Range"] == nil, !isContinued { note([.unrequestedPart]) }
    note(attempt.reader.oddities)
    if state.stage == .connecting { apply(.connected) }
    apply(.head(part))
    guard let response, !hasBeenCancelled else { return }
    try receiver.begin(response, at: part.base)
  }

  /// Whether the body of a response is decoded if it has content codings.
  private func decodes(_ head: Head, _ hop: HTTP.Hop, _ attempt: Attempt) -> Bool {
    switch hop.decoding {
    case .raw: return false
    case .always: return attempt.exchange.range == nil
    case .negotiated:
      guard head.status != 206 else { return false }
      if hop.asksForCodings(range: attempt.exchange.range) { return true }
      return hop.decodesNamedCodings && head.codings.allSatisfy { ContentCoding.isNamed($0, in: hop.headers) }
    }
  }

  /// Creates the decoder for a body; nil if it has no codings.
  private func decoder(of codings: [String]) throws(HTTP.Error) -> Decoder? {
    guard !codings.isEmpty else { return nil }
    guard codings.count <= Decoder.mostStages else { throw HTTP.Error(.cannotDecode, "the body is coded too often") }
    var known: [ContentCoding] = []
    for name in codings {
      guard let coding = ContentCoding(name) else {
        throw HTTP.Error(.cannotDecode, "the content coding \(name) is not known")
      }
      guard coding.isAvailable else { throw HTTP.Error(.cannotDecode, coding.library) }
      known.append(coding)
    }
    return Decoder(known, isStrict: configuration.strict)
  }

  /// Called when bytes of the body, not decoded yet, have arrived.
  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Take {
    guard case .deliver? = progress.plan else {
      progress.drained += bytes.count
      return progress.drained > Self.drainLimit ? .stop : .taken
    }
    if hasBeenCancelled { return .stop }
    if updateHold() { return .pause }
    progress.wireCount += Int64(bytes.count)
    if let decoder = progress.decoder {
      decoder.feed(bytes)
      try decode(decoder)
    } else {
      try deliver(bytes)
    }
    if isWholeBeforeAllIsSent, let attempt {
      core.later { [self] in if attempt === self.attempt, holds.isEmpty { endEarly() } }
    }
    return .taken
  }

  /// Whether the server has ended the HTTP/2 stream early and libcurl would wait forever to send the rest of the body.
  private var isWholeBeforeAllIsSent: Bool {
    guard hasWholeAnswer, let attempt, progress.head?.version == "2" else { return false }
    return attempt.hasBody && !attempt.hasSentAll
  }

  /// Delivers decoded bytes until the request is held or other transfers should get a turn.
  private func decode(_ decoder: Decoder) throws(HTTP.Error) {
    decoder.beginTurn()
    while !updateHold(), !hasBeenCancelled {
      do {
        guard let bytes = try decoder.next() else {
          if decoder.wantsTurn { decodeLater() }
          return
        }
        try deliver(bytes)
      } catch let error as HTTP.Error {
        throw error
      } catch {
        throw HTTP.Error(.cannotDecode, "the coded body is broken")
      }
    }
  }

  private func decodeLater() {
    holds.insert(.turn)
    core.post { [self] in if holds.remove(.turn) != nil { release() } }
  }

  private func deliver(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) {
    if let limit, state.received + Int64(bytes.count) > limit {
      throw HTTP.Error(.tooLarge, "the body has more than \(limit) bytes")
    }
    if let total = state.total, state.received + Int64(bytes.count) > total {
      throw HTTP.Error(.badServerResponse, "the body has more bytes than its head says")
    }
    // Counted first, so that the receiver sees the right progress during the call.
    apply(.bytes(bytes.count))
    if try !receiver.take(bytes) { holds.insert(.receiver) }
    updateHold()
  }

  /// Updates the state from the wishes of the user and the receiver, and returns whether the body is held.
  @discardableResult
  func updateHold() -> Bool {
    if isWantedHeld { holds.insert(.user) } else { holds.remove(.user) }
    let isShown = !holds.isDisjoint(with: .shown)
    if isShown != state.isHeld { apply(isShown ? .hold : .release) }
    return !holds.isEmpty
  }

  /// Resumes reading.
  ///
  /// Called outside libcurl.
  func release() {
    guard state.stage == .receiving, holds.isEmpty else { return }
    noteActivity()
    if let decoder = progress.decoder {
      do throws(HTTP.Error) {
        try decode(decoder)
      } catch {
        return apply(.fail(error))
      }
      guard state.stage == .receiving, holds.isEmpty else { return }
    }
    if progress.hasEndedHeld {
      progress.hasEndedHeld = false
      return endBody()
    }
    if isWholeBeforeAllIsSent { return endEarly() }
    attempt?.resumeReading()
    core.settle()
  }

  /// Continues after an intermediate response.
  ///
  /// Called outside libcurl.
  func goOn(_ plan: Exchange.Plan) {
    guard let hop else { return }
    switch plan {
    case .deliver: break
    case .leaveToLibrary:
      apply(.fail(HTTP.Error(.proxyFailed, "the proxy has not accepted the credential")))
    case .complete:
      if response == nil, let head = progress.head {
        // The kept part came from an earlier client.
        response = HTTP.Response(head, of: hop, status: 200)
        response?.resends = resends
      }
      apply(.head(state.kept))
      apply(.end)
    case .again(let delay):
      let usual = nextDelay()
      resend(.retry, after: max(delay, usual))
    case .authenticate(let asked):
      authentication.answer(asked)
      resend(.challenge)
    case .withoutExpectation:
      self.hop?.headers.removeAll(of: "Expect")
      resend(.expectation)
    case .misdirected: resend(.unprocessed, isFresh: true)
    case .follow(let next):
      do throws(HTTP.Error) {
        self.hop = try followed(hop, to: next)
        authentication.leaveOrigin()
        resend(.redirect)
      } catch {
        apply(.fail(error))
      }
    }
  }

  /// Lets the program decide about a redirect.
  private func followed(_ hop: HTTP.Hop, to next: HTTP.Hop) throws(HTTP.Error) -> HTTP.Hop {
    guard let head = progress.head else { return hop }
    var next = next
    let request = next.request(from: self.request)
    guard let wanted = receiver.redirect(request, after: HTTP.Response(head, of: hop)) else {
      throw HTTP.Error(.redirectRejected, "the program rejected the redirect")
    }
    if let fault = wanted.fault { throw HTTP.Error(.invalidRequest, "the program's redirect cannot be sent: \(fault)") }
    guard wanted.url != request.url else {
      (next.method, next.headers, next.body) = (wanted.method, wanted.headers, wanted.body)
      return next
    }
    do throws(WebAddress.Failure) {
      next.address = try WebAddress(wanted.url)
    } catch {
      throw HTTP.Error(.redirectRejected, "the program's redirect leads to no address of http or https")
    }
    (next.method, next.headers, next.body) = (wanted.method, wanted.headers, wanted.body)
    if let meant = try? WebAddress(request.url), meant.origin != next.address.origin {
      // Headers that the program did not set for this URL stay with the one they were set for.
      for name in HTTP.Hop.secrets where wanted.headers.values(of: name) == request.headers.values(of: name) {
        next.headers.removeAll(of: name)
      }
    }
    return next
  }
}
