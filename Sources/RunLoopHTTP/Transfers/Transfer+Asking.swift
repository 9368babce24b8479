// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore
import RunLoopSockets

// What is asked: the address is read, the name looked up, the head made.
extension Transfer {
  /// Asks the host, after its name was looked up.
  func tryNow() {
    if hop == nil {
      switch prepare() {
      case .success(let first): hop = first
      case .failure(let error): return apply(.fail(error))
      case nil: return
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
      // Opened before any socket or thread: where it is missing, this is the answer.
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

  /// Reads the request; nil if an interceptor has answered it.
  private func prepare() -> Result<HTTP.Hop, HTTP.Error>? {
    var request = request
    for interceptor in configuration.interceptors {
      switch interceptor(request) {
      case .proceed(let changed): request = changed
      case .fail(let code, let detail): return .failure(HTTP.Error(code, detail))
      case .respond(let response, let body):
        answer(response, body, request)
        return nil
      }
    }
    let url = request.url
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
      return .success(
        HTTP.Hop(
          address: address, method: request.method, headers: request.headers, body: request.body,
          allowsResending: request.allowsResending, decoding: request.decoding,
          decodesNamedCodings: request.decodesNamedCodings))
    } catch {
      let detail =
        switch error {
        case .scheme(let scheme): "the scheme \(scheme) is not http or https"
        case .malformed(let reason): "the address cannot be read: \(reason)"
        }
      return .failure(HTTP.Error(.unsupportedURL, url: WebAddress.safeText(of: url), detail))
    }
  }

  /// An interceptor's answer, in the place of a server's.
  private func answer(_ response: HTTP.Response, _ body: HTTP.Body, _ request: HTTP.Request) {
    var response = response
    if response.url.isEmpty {
      response = HTTP.Response(
        status: response.status, headers: response.headers, url: request.url, version: response.version)
    }
    response.isIntercepted = true
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

  /// Asks the host if all addresses are known that are needed, and looks for the first that is not.
  private func resolve(_ hop: HTTP.Hop, _ proxy: ProxyAddress?) throws(HTTP.Error) {
    func known(_ address: WebAddress) -> [SocketAddress]? {
      if address.isNumeric || configuration.unixSocket != nil { return [] }
      return core.names.find(address.host, address.port, now: core.now)
    }
    guard let addresses = known(proxy?.address ?? hop.address) else {
      return lookUp(proxy?.address ?? hop.address, hop, proxy)
    }
    guard let proxy, !proxy.looksUpHosts else { return try ask(hop, proxy, addresses, []) }
    guard let ofHost = known(hop.address) else { return lookUp(hop.address, hop, proxy) }
    try ask(hop, proxy, addresses, ofHost)
  }

  private func lookUp(_ target: WebAddress, _ hop: HTTP.Hop, _ proxy: ProxyAddress?) {
    let ofProxy = proxy.flatMap { $0.address === target ? $0 : nil }
    lookup = HostResolver.resolve(target.host, port: target.port, on: core.loop, inModes: [.common]) {
      [weak self] answer in
      guard let self, self.lookup != nil else { return }
      self.lookup = nil
      self.noteActivity()
      switch answer {
      case .success(let addresses):
        self.core.names.note(target.host, target.port, addresses, now: self.core.now)
        do throws(HTTP.Error) {
          try self.resolve(hop, proxy)
        } catch {
          self.apply(.fail(error))
        }
      case .failure(let error):
        guard let ofProxy else { return self.apply(.fail(HTTP.Error(.cannotFindHost, "\(error)"))) }
        self.apply(.fail(HTTP.Error(.proxyFailed, ofProxy.detail("\(error)"))))
      }
    }
  }

  private func ask(
    _ hop: HTTP.Hop, _ proxy: ProxyAddress?, _ addresses: [SocketAddress], _ ofHost: [SocketAddress]
  ) throws(HTTP.Error) {
    apply(.resolved)
    let part = state.kept
    let range = part.received > 0 ? part.received : nil
    let exchange = Exchange(
      address: hop.address, method: hop.method, fields: fields(of: hop, range: range), range: range,
      addresses: addresses, addressesBehindProxy: ofHost, isFresh: progress.isFresh, proxy: proxy,
      proxyAuthentication: authentication.ofProxy,
      allowsResending: hop.allowsResending)
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
    // A method that usually has a body says that it has none.
    guard let body = hop.body ?? (hop.method.usuallyHasBody ? .bytes([]) : nil) else { return nil }
    return try body.open { [weak self] in
      self?.core.post { [weak self] in self?.attempt?.resumeSending() }
    }
  }

  /// Whether the next answer can go on where the last one was left.
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
    if let credential = authentication.credential, let challenge = authentication.challenge,
      authentication.origin == hop.address.origin, fields["Authorization"] == nil
    {
      let clientNonce = hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max) })
      authentication.uses &+= 1
      fields.add(
        "Authorization",
        challenge.answer(
          credential, method: hop.method, target: hop.address.target, clientNonce: clientNonce,
          use: authentication.uses,
          body: hop.body))
    }
    // What would have no value to the library is sent as a field without one.
    return fields.fields
  }
}
