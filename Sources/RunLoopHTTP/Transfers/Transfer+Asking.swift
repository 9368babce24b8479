// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore
import RunLoopSockets

// MARK: - Making the request: parsing the URL, resolving the name, composing the headers
extension Transfer {
  /// Makes the request as soon as the name is resolved.
  func tryNow() {
    if let interceptions {
      if interceptions.startsAfresh { forgetKept() }
      interceptions.startsAfresh = false
      if let (response, body) = interceptions.answer {
        interceptions.answer = nil
        return answer(response, body)
      }
    }
    if hop == nil {
      guard interceptions?.request != nil || settings.value.interceptors.isEmpty else { return intercept() }
      switch prepare(interceptions?.request ?? request) {
      case .success(let first): hop = first
      case .failure(let error): return apply(.fail(error))
      }
    }
    guard let hop else { return }
    if !canGoOnFromKept(hop) {
      guard state.kept.received == 0 || receiver.canRestart else {
        return apply(.fail(HTTP.Error(.resumeMismatch, "the body can neither be continued nor begun afresh")))
      }
      forgetKept()
    }
    do throws(HTTP.Error) {
      // libcurl is loaded before any socket or thread is created, so that a missing library fails early.
      try core.openLoader()
      if let proxyChoice {
        try resolve(hop, proxyChoice.proxy(for: hop.address))
      } else {
        try resolve(hop, core.proxy(for: hop.address))
      }
    } catch {
      apply(.fail(error))
    }
  }

  /// Parses and validates the request.
  private func prepare(_ request: HTTP.Request) -> Result<HTTP.Hop, HTTP.Error> {
    let url = request.url
    onInterim = request.onInterim
    authentication = Authentication()
    do throws(WebAddress.Failure) {
      let address = try core.address(url)
      if let fault = request.fault {
        return .failure(HTTP.Error(.invalidRequest, url: address.safeText, fault))
      }
      proxyChoice = request.proxy.map { ProxyChoice($0) }
      guard settings.hasSendableUserAgent else {
        return .failure(HTTP.Error(.invalidRequest, url: address.safeText, "the user agent has a control character"))
      }
      if let user = address.user {
        authentication.credential = HTTP.Credential(user: user, password: address.password ?? "")
        authentication.origin = address.origin
      } else {
        authentication.credential = configuration.credential
        authentication.origin = configuration.credential?.origin ?? address.origin
      }
      if let credential = authentication.credential, !credential.isSendable {
        return .failure(HTTP.Error(.invalidRequest, url: address.safeText, "the credential has a control character"))
      }
      return .success(HTTP.Hop(request, at: address))
    } catch {
      let detail =
        switch error {
        case .scheme(let scheme): "the scheme \(scheme) is not http or https"
        case .malformed(let reason): "the address cannot be read: \(reason)"
        }
      return .failure(HTTP.Error(.unsupportedURL, url: WebAddress.safeText(of: url), detail))
    }
  }

  /// Delivers an interceptor's response in place of a server's.
  private func answer(_ response: HTTP.Response, _ body: HTTP.Body) {
    var response = response
    if response.url.isEmpty {
      response = HTTP.Response(
        status: response.status, headers: response.headers, url: (interceptions?.request ?? request).url,
        version: response.version)
    }
    response.isIntercepted = true
    response.resends = resends
    if !attempts.isEmpty { response.attempts = attempts }
    self.response = response
    apply(.resolved)
    apply(.head(OperationState.Part()))
    do throws(HTTP.Error) {
      if let limit, Int64(body.count) > limit { throw HTTP.Error(.tooLarge, "the body has more than \(limit) bytes") }
      try receiver.begin(response, at: 0)
      var failure: HTTP.Error?
      body.bytes.withUnsafeBytes { bytes in
        do throws(HTTP.Error) { _ = try receiver.take(bytes) } catch { failure = error }
      }
      if let failure { throw failure }
    } catch {
      return apply(.fail(error))
    }
    apply(.bytes(body.count))
    apply(.end)
  }

  /// Makes the request if all required addresses are known; otherwise resolves the first unknown one.
  private func resolve(_ hop: HTTP.Hop, _ proxy: ProxyAddress?) throws(HTTP.Error) {
    let override = proxy == nil && !settings.overrides.isEmpty ? try settings.overrides.target(of: hop.address) : nil
    func known(_ address: WebAddress) -> [SocketAddress]? {
      if address.isNumeric || configuration.unixSocket != nil { return [] }
      return core.names.find(address.host, address.port, now: core.now)
    }
    let target = proxy?.address ?? override ?? hop.address
    guard let addresses = known(target) else { return lookUp(target, hop, proxy) }
    var exchange = Exchange(
      address: hop.address, method: hop.method, fields: [], range: nil, addresses: addresses,
      isFresh: progress.isFresh, proxy: proxy, proxyAuthentication: authentication.ofProxy,
      allowsResending: hop.allowsResending, override: override)
    if let proxy, !proxy.looksUpHosts {
      guard let ofHost = known(hop.address) else { return lookUp(hop.address, hop, proxy) }
      exchange.addressesBehindProxy = ofHost
    }
    try ask(hop, exchange)
  }

  private func lookUp(_ target: WebAddress, _ hop: HTTP.Hop, _ proxy: ProxyAddress?) {
    let ofProxy = proxy.flatMap { $0.address === target ? $0 : nil }
    let started = core.now
    lookup = HostResolver.resolve(target.host, port: target.port, on: core.loop, inModes: [.common]) {
      [weak self] answer in
      guard let self, self.lookup != nil else { return }
      self.lookup = nil
      self.noteActivity()
      self.progress.lookupTime += self.core.now.nanoseconds - started.nanoseconds
      switch answer {
      case .success(let addresses):
        self.core.names.note(target.host, target.port, addresses, now: self.core.now)
        do throws(HTTP.Error) {
          try self.resolve(hop, proxy)
        } catch {
          self.apply(.fail(error))
        }
      case .failure(let error):
        guard let ofProxy else { return self.fail(HTTP.Error(.cannotFindHost, "\(error)")) }
        self.fail(HTTP.Error(.proxyFailed, ofProxy.detail("\(error)")))
      }
    }
  }

  private func ask(_ hop: HTTP.Hop, _ exchange: consuming Exchange) throws(HTTP.Error) {
    apply(.resolved)
    let range = state.kept.received > 0 ? state.kept.received : nil
    exchange.range = range
    exchange.fields = fields(of: hop, range: range)
    let source = try openBody(of: hop)
    let shape = core.shape(of: exchange, settings, hasBody: source != nil)
    guard let handle = core.takeHandle(shape) else {
      source?.close()
      throw HTTP.Error(.cannotConnect, "libcurl has no memory for a transfer")
    }
    let attempt = core.makeAttempt(self, handle, consume exchange, source)
    do throws(HTTP.Error) {
      try attempt.setUp(shape)
    } catch {
      handle.free()
      attempt.release()
      throw error
    }
    start(attempt)
  }

  private func openBody(of hop: HTTP.Hop) throws(HTTP.Error) -> (any BodySource)? {
    // A method that usually has a body sends a length of zero.
    guard let body = hop.body ?? (hop.method.usuallyHasBody ? .bytes([]) : nil) else { return nil }
    return try body.open { [weak self] in
      self?.core.post { [weak self] in self?.attempt?.resumeSending() }
    }
  }

  /// Whether the next response can continue from the kept part.
  private func canGoOnFromKept(_ hop: HTTP.Hop) -> Bool {
    state.kept.received == 0 || state.kept.canGoOn && hop.method == .get && hop.headers["Range"] == nil
  }

  private func fields(of hop: HTTP.Hop, range: Int64?) -> [HTTP.Headers.Field] {
    if hop.headers.isEmpty, range == nil, hop.decoding != .raw, authentication.challenge == nil,
      !configuration.storesCookies
    {
      return settings.usualFields
    }
    var fields = hop.headers
    if fields["Content-Length"] != nil { fields.removeAll(of: "Content-Length") }
    if fields["User-Agent"] == nil { fields.add("User-Agent", configuration.userAgent) }
    if fields["Accept"] == nil { fields.add(OwnConfiguration.accept) }
    if let range, let validator = state.kept.validator {
      fields["Range"] = "bytes=\(range)-"
      fields["If-Range"] = validator.text
      fields["Accept-Encoding"] = "identity"
    } else if hop.asksForCodings(range: range), let field = ContentCoding.field {
      fields.add(field)
    }
    if configuration.storesCookies, let cookies = core.jar.header(for: hop.address) {
      fields["Cookie"] = fields["Cookie"].map { "\($0); \(cookies)" } ?? cookies
    }
    if authentication.origin == hop.address.origin, fields["Authorization"] == nil,
      let value = authentication.authorization(hop.method, hop.address.target, hop.body)
    {
      fields.add("Authorization", value)
    }
    // A header with an empty value is sent as such, although libcurl would remove it.
    return fields.fields
  }
}
