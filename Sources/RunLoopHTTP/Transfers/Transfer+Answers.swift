// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// What is answered. Within the library, but for going on after an answer that is not the last.
extension Transfer {
  /// How much of an answer's body is read that is not the last, to keep the connection.
  static let drainLimit = 64 * 1024
  /// How many credentials of the program's a server may reject.
  static let mostFailures = 10
  /// For how long it is read, in nanoseconds.
  static let drainTime: Int64 = 1_000_000_000

  /// The head of an answer has arrived.
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

  /// An interim response has arrived.
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
    // The server has no certificate or configuration for this host on the connection, and has not looked further.
    if head.status == .misdirectedRequest, hop.allowsResending, !progress.isFresh, mayResendUnprocessed,
      isRepeatable || !attempt.hasSentSome
    {
      return .misdirected
    }
    // A server says 408 when it has waited too long for a request, which may be meant for the time before it.
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

  /// Whether a challenge is answered; then the credential for it is there.
  private func answers(_ asked: Challenge, _ head: Head, _ hop: HTTP.Hop) throws(HTTP.Error) -> Bool {
    let isKnown = authentication.credential != nil && authentication.origin == hop.address.origin
    // What was answered to this origin before has not been accepted, unless only its number was too old. One that was
    // accepted for an earlier part of the body may be too old for the next, which not every server says.
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

  /// Whether an answer goes on where the last one ended.
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
      // With `If-Range` a server may leave the coding of the whole out.
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

  /// Whether a response goes on with what was received before.
  func isContinued(_ head: Head, _ attempt: Attempt) -> Bool { attempt.exchange.range != nil && head.status == 206 }

  /// Begins to deliver a response.
  ///
  /// - Parameter changed: What the interceptors want to be delivered in the place of its head.
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
    // What is reported is the first answer, of which this is the rest.
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

  /// Whether the body of a response is decoded if it is coded.
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

  /// What decodes a body; nil if it has no codings.
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

  /// Bytes of the body have arrived, as they are on the wire.
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

  /// Whether the stream has ended on the server's side, and libcurl waits for room that never comes.
  private var isWholeBeforeAllIsSent: Bool {
    guard hasWholeAnswer, let attempt, progress.head?.version == "2" else { return false }
    return attempt.hasBody && !attempt.hasSentAll
  }

  /// Delivers what can be decoded, until the request is held or everybody else is to take a turn.
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
    // Counted before, so that what the receiver asks from within is right.
    apply(.bytes(bytes.count))
    if try !receiver.take(bytes) { holds.insert(.receiver) }
    updateHold()
  }

  /// Lets the state follow what user and receiver want; whether no bytes are taken now.
  @discardableResult
  func updateHold() -> Bool {
    if isWantedHeld { holds.insert(.user) } else { holds.remove(.user) }
    let isShown = !holds.isDisjoint(with: .shown)
    if isShown != state.isHeld { apply(isShown ? .hold : .release) }
    return !holds.isEmpty
  }

  /// Takes bytes again.
  ///
  /// Outside of the library.
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

  /// Goes on after an answer that is not the last.
  ///
  /// Outside of the library.
  func goOn(_ plan: Exchange.Plan) {
    guard let hop else { return }
    switch plan {
    case .deliver: break
    case .leaveToLibrary:
      apply(.fail(HTTP.Error(.proxyFailed, "the proxy has not accepted the credential")))
    case .complete:
      if response == nil, let head = progress.head {
        // What was kept came from an earlier client.
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

  /// What the program makes of a redirect.
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
      // What the program has not set for this address stays with the one that it was meant for.
      for name in HTTP.Hop.secrets where wanted.headers.values(of: name) == request.headers.values(of: name) {
        next.headers.removeAll(of: name)
      }
    }
    return next
  }
}
