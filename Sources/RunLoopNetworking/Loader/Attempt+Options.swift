// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore
import RunLoopPorts

extension Attempt {
  /// Tells the library what the exchange is to be; throws if it has no memory, or was built without what is asked for.
  func setUp() throws(HTTP.Error) {
    var failed: Int32 = 0
    func check(_ code: Int32) { if code != 0, failed == 0 { failed = code } }
    func set(_ option: some BinaryInteger, _ value: Int) { check(clc_set_long(easy, Int32(option), value)) }
    func set(_ option: some BinaryInteger, _ text: String) { check(clc_set_text(easy, Int32(option), text)) }
    func set(_ option: some BinaryInteger, pointer: UnsafeMutableRawPointer?) {
      check(clc_set_pointer(easy, Int32(option), pointer))
    }
    let configuration = transfer.configuration

    set(clc_option_url, exchange.address.requestText)
    set(clc_option_path_as_is, 1)
    set(clc_option_protocols, Int(clc_protocols_web))
    set(clc_option_no_signal, 1)
    set(clc_option_error_buffer, pointer: errorText)
    // The body is decoded here, where an end that is missing is noticed.
    set(clc_option_content_decoding, 0)
    set(clc_option_connect_timeout, Self.milliseconds(ofConnectTimeout: configuration.connectTimeout))
    if exchange.isFresh { set(clc_option_fresh_connect, 1) }
    let isPlain = !exchange.address.isTLS
    if isPlain, !CurlLibrary.asksBeforeRequest || configuration.unixSocket != nil { set(clc_option_forbid_reuse, 1) }

    // The method and the body.
    if exchange.method == "HEAD" {
      set(clc_option_no_body, 1)
    } else if hasBody {
      set(clc_option_upload, 1)
      check(clc_set_offset(easy, Int32(clc_option_upload_size), uploadSize ?? -1))
      set(clc_option_custom_request, exchange.method)
    } else {
      set(clc_option_http_get, 1)
      if exchange.method != "GET" { set(clc_option_custom_request, exchange.method) }
    }
    // What the library would add by itself is taken away by a name without a value.
    var lines = exchange.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
    if !exchange.fields.contains(where: { HTTP.Headers.isSame($0.name, "Expect") }) { lines.append("Expect:") }
    guard let list = append(lines) else { throw HTTP.Error(.cannotConnect, "there is no memory for the head") }
    check(clc_set_list(easy, Int32(clc_option_http_header), list))
    switch configuration.version {
    case .automatic: set(clc_option_http_version, isPlain ? Int(clc_http_1_1) : Int(clc_http_2_by_tls))
    case .http1: set(clc_option_http_version, Int(clc_http_1_1))
    case .http2: set(clc_option_http_version, Int(clc_http_2_at_once))
    }
    // Further requests to an encrypted server wait for its connection, which may take them all.
    if !isPlain, configuration.version != .http1, loader.multiplexes(exchange.address.origin) != false {
      set(clc_option_wait_for_multiplexing, 1)
      waitsForMultiplexing = true
    }

    // Where it goes.
    if !exchange.addresses.isEmpty {
      let target = exchange.proxy ?? exchange.address
      let addresses = exchange.addresses.compactMap { address in
        address.host.map { address.family == .ipv6 ? "[\($0)]" : $0 }
      }
      let entry = "+\(target.host):\(target.port):\(addresses.joined(separator: ","))"
      guard let list = append(["-\(target.host):\(target.port)", entry]) else {
        throw HTTP.Error(.cannotConnect, "there is no memory for the addresses")
      }
      check(clc_set_list(easy, Int32(clc_option_resolve), list))
    }
    if let path = configuration.unixSocket {
      if path.hasPrefix("@") {
        set(clc_option_unix_abstract, String(path.dropFirst()))
      } else {
        set(clc_option_unix_path, path)
      }
    }
    // An empty text: the library does not look at the environment.
    set(clc_option_proxy, exchange.proxy.map { "\($0.scheme)://\($0.hostText):\($0.port)" } ?? "")
    set(clc_option_no_proxy, "")
    if let proxy = exchange.proxy {
      set(clc_option_suppress_connect_headers, 1)
      if let user = proxy.user {
        set(clc_option_proxy_authentication, Int(clc_basic) | Int(clc_digest))
        set(clc_option_proxy_user, user)
        set(clc_option_proxy_password, proxy.password ?? "")
      }
    }

    if !isPlain, CurlLibrary.usesOpenSSL { check(clc_set_encryption(easy, number)) }
    setTrust(configuration.trust, set)
    setFunctions(set, check)
    if failed != 0 {
      throw HTTP.Error(.invalidRequest, "libcurl cannot do this: \(String(cString: clc_easy_text(failed))) (\(failed))")
    }
  }

  /// A timeout as the library takes it, whose zero would be its own five minutes.
  static func milliseconds(ofConnectTimeout timeout: Duration) -> Int {
    max(1, Int(Int32(clamping: Int64(saturating: timeout) / 1_000_000)))
  }

  private func setTrust(_ trust: HTTP.Trust, _ set: (Int, String) -> Void) {
    if let roots = trust.roots {
      set(Int(clc_option_ca_file), roots)
      set(Int(clc_option_proxy_ca_file), roots)
      // The library may have been built with a directory of the system's roots, which would count too. A library that
      // knows no directories refuses this, and has none.
      _ = clc_set_pointer(easy, Int32(clc_option_ca_directory), nil)
      _ = clc_set_pointer(easy, Int32(clc_option_proxy_ca_directory), nil)
    }
    if !trust.pins.isEmpty {
      set(Int(clc_option_pinned_key), trust.pins.map { "sha256//" + $0 }.joined(separator: ";"))
    }
    if let certificate = trust.certificate {
      set(Int(clc_option_certificate), certificate.chain)
      set(Int(clc_option_key), certificate.key)
      if let password = certificate.password { set(Int(clc_option_key_password), password) }
    }
    if trust.allowsInvalidCertificates {
      _ = clc_set_long(easy, Int32(clc_option_verify_peer), 0)
      _ = clc_set_long(easy, Int32(clc_option_verify_host), 0)
    }
  }

  private func setFunctions(_ set: (Int, UnsafeMutableRawPointer?) -> Void, _ check: (Int32) -> Void) {
    set(Int(clc_option_header_data), context)
    check(clc_set_data_function(easy, Int32(clc_option_header_function), attemptHeaderFunction))
    set(Int(clc_option_write_data), context)
    check(clc_set_data_function(easy, Int32(clc_option_write_function), attemptWriteFunction))
    if hasBody {
      set(Int(clc_option_read_data), context)
      check(clc_set_data_function(easy, Int32(clc_option_read_function), attemptReadFunction))
      set(Int(clc_option_seek_data), context)
      check(clc_set_seek_function(easy, attemptSeekFunction))
    }
    if CurlLibrary.asksBeforeRequest {
      set(Int(clc_option_prerequest_data), context)
      check(clc_set_prerequest_function(easy, attemptPrerequestFunction))
    }
    set(Int(clc_option_open_socket_data), context)
    check(clc_set_open_socket_function(easy, attemptOpenSocketFunction))
    // A connection outlives the transfer that has made it: its socket is the loader's.
    set(Int(clc_option_close_socket_data), Unmanaged.passUnretained(loader).toOpaque())
    check(clc_set_close_socket_function(easy, loaderCloseFunction))
  }
}

// What libcurl calls.

private let attemptHeaderFunction: clc_data_function = { bytes, size, count, context in
  guard let attempt = Attempt.at(context) else { return 0 }
  let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return attempt.takeLine(line) ? line.count : 0
}

private let attemptWriteFunction: clc_data_function = { bytes, size, count, context in
  guard let attempt = Attempt.at(context) else { return 0 }
  return attempt.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

private let attemptReadFunction: clc_data_function = { bytes, size, count, context in
  guard let attempt = Attempt.at(context) else { return Int(clc_read_abort) }
  return attempt.readBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}

private let attemptSeekFunction: clc_seek_function = { context, offset, _ in
  guard offset == 0, let attempt = Attempt.at(context) else { return Int32(clc_seek_fail) }
  return attempt.rewind()
}

private let attemptPrerequestFunction: clc_prerequest_function = { context, peer, own, peerPort, ownPort in
  guard let attempt = Attempt.at(context) else { return Int32(clc_prerequest_abort) }
  return attempt.aboutToSend(SocketWatch.Ends(own: own, ownPort, peer: peer, peerPort))
}

private let attemptOpenSocketFunction: clc_open_socket_function = { context, _, wanted in
  guard let attempt = Attempt.at(context), let wanted else { return -1 }
  return attempt.openSocket(wanted.pointee)
}
