// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopSockets

extension Attempt {
  /// Configures the libcurl handle for the exchange, or throws if libcurl has no memory or lacks a required feature.
  ///
  /// - Parameter shape: The options shared with other requests; nil if there are none.
  func setUp(_ shape: Handle.Shape?) throws(HTTP.Error) {
    var failed: Int32 = 0
    func check(_ code: Int32) { if code != 0, failed == 0 { failed = code } }
    // A handle that is already set up has the options of this shape.
    if handle.isSetUp { check(handle.setAddressesAgain()) } else { try setUpAll(check) }
    handle.errorText.pointee = 0
    check(handle.set(url: exchange.address.requestText))
    check(
      handle.set(
        fields: exchange.sentFields, hasBody: hasBody,
        isTunneled: exchange.proxyOfHTTP != nil && exchange.address.isTLS))
    // Further requests to a TLS server wait for its first connection, which may be able to multiplex them all.
    waitsForMultiplexing =
      exchange.address.isTLS && transfer.configuration.version != .http1
      && loader.multiplexes(exchange.address) != false
    check(handle.set(waitsForMultiplexing: waitsForMultiplexing))
    if exchange.address.isTLS, CurlLibrary.usesOpenSSL {
      check(clc_set_encryption(easy, number))
      if evaluates { check(clc_set_encryption_function(easy, attemptEncryptionFunction)) }
    }
    guard failed != Int32(clc_out_of_memory) else {
      throw HTTP.Error(.cannotConnect, "libcurl has no memory for a request")
    }
    guard failed == 0 else {
      throw HTTP.Error(.invalidRequest, "libcurl cannot do this: \(String(cString: clc_easy_text(failed))) (\(failed))")
    }
    // A handle that already has this shape keeps its own object.
    if !handle.isSetUp { handle.shape = shape }
    handle.attempt = self
  }

  /// Sets the options that requests of the same shape share, or all options if there is no shape.
  private func setUpAll(_ check: (Int32) -> Void) throws(HTTP.Error) {
    var isCut = false
    func set(_ option: some BinaryInteger, _ value: Int) { check(clc_set_long(easy, Int32(option), value)) }
    func set(_ option: some BinaryInteger, _ text: String) {
      // libcurl would stop at a zero byte and use a different file, socket or name.
      guard let whole = try? CText(text) else { return isCut = true }
      check(whole.withPointer { clc_set_text(easy, Int32(option), $0) })
    }
    func set(_ option: some BinaryInteger, pointer: UnsafeMutableRawPointer?) {
      check(clc_set_pointer(easy, Int32(option), pointer))
    }
    let configuration = transfer.configuration

    set(clc_option_own_data, pointer: handle.context)
    set(clc_option_path_as_is, 1)
    set(clc_option_protocols, Int(clc_protocols_web))
    set(clc_option_no_signal, 1)
    set(clc_option_error_buffer, pointer: handle.errorText)
    // The body is decoded here, which detects truncated encodings.
    set(clc_option_content_decoding, 0)
    if !limitsConnecting { set(clc_option_connect_timeout, connectMilliseconds) }
    if let age = configuration.connectionAge { set(clc_option_connection_age, age) }
    let isPlain = !exchange.address.isTLS
    let isPlainHTTP2 = isPlain && configuration.version == .http2 && exchange.proxy == nil
    let isAlone = isPlainHTTP2 && !CurlLibrary.keepsPlainHTTP2 || evaluates && !knowsTrust
    if exchange.isFresh || isAlone { set(clc_option_fresh_connect, 1) }
    if isAlone || isPlain && (!CurlLibrary.asksBeforeRequest || configuration.unixSocket != nil) {
      set(clc_option_forbid_reuse, 1)
    }

    // The method and the body.
    if exchange.method == .head {
      set(clc_option_no_body, 1)
    } else if hasBody {
      set(clc_option_upload, 1)
      check(clc_set_offset(easy, Int32(clc_option_upload_size), uploadSize ?? -1))
      set(clc_option_custom_request, exchange.method.rawValue)
    } else {
      set(clc_option_http_get, 1)
      if exchange.method != .get { set(clc_option_custom_request, exchange.method.rawValue) }
    }
    switch configuration.version {
    case .automatic: set(clc_option_http_version, isPlain ? Int(clc_http_1_1) : Int(clc_http_2_by_tls))
    case .http1: set(clc_option_http_version, Int(clc_http_1_1))
    case .http2: set(clc_option_http_version, Int(clc_http_2_at_once))
    }

    // The target.
    check(handle.set(addresses: exchange.resolveLines))
    check(handle.set(route: exchange.route))
    if let path = configuration.unixSocket {
      if path.hasPrefix("@") {
        set(clc_option_unix_abstract, String(path.dropFirst()))
      } else {
        set(clc_option_unix_path, path)
      }
    }
    // An empty string keeps libcurl from reading the environment.
    set(clc_option_proxy, exchange.proxy?.text ?? "")
    set(clc_option_no_proxy, "")
    if let proxy = exchange.proxy {
      set(clc_option_suppress_connect_headers, 1)
      if let user = proxy.address.user {
        set(clc_option_proxy_authentication, exchange.proxyAuthentication ?? Int(clc_basic) | Int(clc_digest))
        set(clc_option_proxy_user, user)
        set(clc_option_proxy_password, proxy.address.password ?? "")
      }
    }

    try setTrust(configuration.trust, set)
    setFunctions(set, check)
    // The option is not named, because its value may be a password.
    if isCut {
      throw HTTP.Error(.invalidRequest, "a path, name or password of the configuration contains a zero byte")
    }
  }

  /// The connect timeout in milliseconds, at least 1 because 0 would mean libcurl's default of five minutes.
  static func milliseconds(ofConnectTimeout timeout: Duration) -> Int {
    max(1, Int(Int32(clamping: Int64(saturating: timeout) / 1_000_000)))
  }

  var connectMilliseconds: Int { Self.milliseconds(ofConnectTimeout: transfer.settings.value.connectTimeout) }

  /// Whether the connect timeout is enforced here instead of by libcurl, which would check it again on any activity of
  /// its transfers, most of which are connected already.
  ///
  /// libcurl is needed to divide the time between several addresses. Its default limit is five minutes. Without the
  /// prerequest callback, it is not known when the connection is made.
  var limitsConnecting: Bool {
    CurlLibrary.asksBeforeRequest && exchange.addresses.count <= 1 && connectMilliseconds < 300_000
  }

  private func setTrust(_ trust: HTTP.Trust, _ set: (Int, String) -> Void) throws(HTTP.Error) {
    let oldest = trust.minimumVersion == .tls12 ? Int(clc_tls_1_2) : Int(clc_tls_1_3)
    for option in [clc_option_tls_version, clc_option_proxy_tls_version] {
      _ = clc_set_long(easy, Int32(option), oldest)
    }
    if let roots = trust.roots {
      set(Int(clc_option_ca_file), roots)
      set(Int(clc_option_proxy_ca_file), roots)
      // libcurl may have been built with a default directory of roots, which would be trusted as well. Clearing the
      // option fails only in builds without support for directories.
      _ = clc_set_pointer(easy, Int32(clc_option_ca_directory), nil)
      _ = clc_set_pointer(easy, Int32(clc_option_proxy_ca_directory), nil)
    }
    if evaluates {
      // The evaluation checks everything, so a TLS session that skips the handshake must not be resumed.
      _ = clc_set_long(easy, Int32(clc_option_verify_host), 0)
      _ = clc_set_long(easy, Int32(clc_option_keep_sessions), 0)
    } else if exchange.address.isTLS, trust.evaluate != nil {
      throw HTTP.Error(
        .tlsFailed, "the program decides whom it trusts, which needs OpenSSL 3 and no proxy of https")
    } else if !trust.pins.isEmpty {
      set(Int(clc_option_pinned_key), trust.pins.map { "sha256//" + $0 }.joined(separator: ";"))
    }
    if let certificate = trust.certificate {
      set(Int(clc_option_certificate), certificate.chain)
      set(Int(clc_option_key), certificate.key)
      if let password = certificate.password { set(Int(clc_option_key_password), password) }
    }
    if trust.allowsInvalidCertificates, !evaluates {
      _ = clc_set_long(easy, Int32(clc_option_verify_peer), 0)
      _ = clc_set_long(easy, Int32(clc_option_verify_host), 0)
    }
  }

  private func setFunctions(_ set: (Int, UnsafeMutableRawPointer?) -> Void, _ check: (Int32) -> Void) {
    set(Int(clc_option_header_data), handle.context)
    check(clc_set_data_function(easy, Int32(clc_option_header_function), attemptHeaderFunction))
    set(Int(clc_option_write_data), handle.context)
    check(clc_set_data_function(easy, Int32(clc_option_write_function), attemptWriteFunction))
    if hasBody {
      set(Int(clc_option_read_data), handle.context)
      check(clc_set_data_function(easy, Int32(clc_option_read_function), attemptReadFunction))
      set(Int(clc_option_seek_data), handle.context)
      check(clc_set_seek_function(easy, attemptSeekFunction))
    }
    if CurlLibrary.asksBeforeRequest {
      set(Int(clc_option_prerequest_data), handle.context)
      check(clc_set_prerequest_function(easy, attemptPrerequestFunction))
      if exchange.proxyOfHTTP != nil, exchange.address.isTLS {
        check(clc_set_long(easy, Int32(clc_option_no_progress), 0))
        set(Int(clc_option_progress_data), handle.context)
        check(clc_set_progress_function(easy, attemptProgressFunction))
      }
    }
    set(Int(clc_option_debug_data), handle.context)
    check(clc_set_debug_function(easy, attemptDebugFunction))
    set(Int(clc_option_open_socket_data), handle.context)
    check(clc_set_open_socket_function(easy, attemptOpenSocketFunction))
    // A connection outlives the transfer that opened it, so its socket belongs to the loader.
    set(Int(clc_option_close_socket_data), Unmanaged.passUnretained(loader).toOpaque())
    check(clc_set_close_socket_function(easy, loaderCloseFunction))
  }
}

// MARK: - Callbacks for libcurl

private let attemptHeaderFunction: clc_data_function = { bytes, size, count, context in
  guard let attempt = Handle.attempt(at: context) else { return 0 }
  clc_note_progress()
  let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return attempt.takeLine(line) ? line.count : 0
}

private let attemptWriteFunction: clc_data_function = { bytes, size, count, context in
  guard let attempt = Handle.attempt(at: context) else { return 0 }
  clc_note_progress()
  return attempt.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

private let attemptDebugFunction: clc_debug_function = { _, kind, bytes, count, context in
  guard kind == Int32(clc_debug_data_in), let attempt = Handle.attempt(at: context) else { return 0 }
  attempt.takeWire(UnsafeRawBufferPointer(start: bytes, count: count))
  return 0
}

private let attemptReadFunction: clc_data_function = { bytes, size, count, context in
  guard let attempt = Handle.attempt(at: context) else { return Int(clc_read_abort) }
  clc_note_progress()
  return attempt.readBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}

private let attemptSeekFunction: clc_seek_function = { context, offset, _ in
  guard offset == 0, let attempt = Handle.attempt(at: context) else { return Int32(clc_seek_fail) }
  return attempt.rewind()
}

private let attemptPrerequestFunction: clc_prerequest_function = { context, peer, own, peerPort, ownPort in
  guard let attempt = Handle.attempt(at: context) else { return Int32(clc_prerequest_abort) }
  return attempt.aboutToSend(SocketWatch.Said(own: own, ownPort: ownPort, peer: peer, peerPort: peerPort))
}

private let attemptEncryptionFunction: clc_encryption_function = { easy, encryption, number in
  _ = clc_prepare_encryption(easy, encryption, number)
  let attempt = easy.flatMap { Handle.attempt(at: clc_get_pointer($0, Int32(clc_info_own_data))) }
  return attempt?.prepareEvaluation(encryption) == true ? 0 : Int32(clc_aborted_by_callback)
}

private let attemptProgressFunction: clc_progress_function = { context, _, _, _, _ in
  Handle.attempt(at: context)?.looks() ?? 1
}

private let attemptOpenSocketFunction: clc_open_socket_function = { context, _, wanted in
  guard let attempt = Handle.attempt(at: context), let wanted else { return -1 }
  return attempt.openSocket(wanted.pointee)
}
