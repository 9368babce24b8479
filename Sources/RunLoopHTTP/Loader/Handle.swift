// SPDX-License-Identifier: Apache-2.0

import CLibCurl

/// A libcurl easy handle with the options it has, of which a similar request only sets those that differ.
///
/// Used only on the loader's thread.
final class Handle {
  // No variable is mutated across a call to other code, so those used by every request skip the exclusivity check.

  /// The options shared by similar requests: all but the URL, the headers and whether to wait for multiplexing.
  ///
  /// It is an immutable object, so that copying it is cheap.
  final class Shape: Equatable {
    /// The configuration, retained so that no other configuration can have the same identity.
    let settings: OwnConfiguration
    let isTLS: Bool
    let isFresh: Bool
    let addresses: [String]
    /// The target that libcurl connects to instead of the host.
    let route: String?

    init(settings: OwnConfiguration, isTLS: Bool, isFresh: Bool, addresses: [String], route: String? = nil) {
      self.settings = settings
      self.isTLS = isTLS
      self.isFresh = isFresh
      self.addresses = addresses
      self.route = route
    }

    static func == (left: Shape, right: Shape) -> Bool {
      left === right
        || left.settings === right.settings && left.isTLS == right.isTLS && left.isFresh == right.isFresh
          && left.addresses == right.addresses && left.route == right.route
    }
  }

  let easy: OpaquePointer
  @exclusivity(unchecked) var attempt: Attempt?
  /// The options that are set; nil if the next request has to set everything.
  @exclusivity(unchecked) var shape: Shape? {
    didSet { isSetUp = shape != nil }
  }
  @exclusivity(unchecked) private(set) var isSetUp = false

  @exclusivity(unchecked) private var url = ""
  @exclusivity(unchecked) private var hasQuery = false
  @exclusivity(unchecked) private var fields: [HTTP.Headers.Field]?
  @exclusivity(unchecked) private var waitsForMultiplexing = false
  // Objects that libcurl uses while these options are set.
  /// The parsed URL, so that libcurl does not have to parse it for each request.
  private var readURL: OpaquePointer?
  private var head: OpaquePointer?
  private var proxyHead: OpaquePointer?
  private var addresses: OpaquePointer?
  private var route: OpaquePointer?
  private let errorBuffer: UnsafeMutablePointer<CChar>

  private static let errorSize = 256

  /// Creates a handle, or returns nil if there is no memory.
  init?() {
    guard let easy = clc_easy_make() else { return nil }
    self.easy = easy
    errorBuffer = .allocate(capacity: Self.errorSize)
    errorBuffer.initialize(repeating: 0, count: Self.errorSize)
  }

  /// Frees all resources, after which the handle must not be used.
  func free() {
    attempt = nil
    clc_easy_free(easy)
    freeURL()
    freeLists()
    errorBuffer.deallocate()
  }

  /// Whether the raw bytes of the body are reported, starting with the next ones.
  var reportsWire = false {
    didSet { if reportsWire != oldValue { _ = clc_set_long(easy, Int32(clc_option_verbose), reportsWire ? 1 : 0) } }
  }

  func reset() {
    clc_easy_reset(easy)
    reportsWire = false
    freeURL()
    freeLists()
    shape = nil
    url = ""
    fields = nil
    waitsForMultiplexing = false
  }

  private func freeURL() {
    if let readURL { clc_url_free(readURL) }
    readURL = nil
  }

  private func freeLists() {
    for list in [addresses, route] { if let list { clc_list_free(list) } }
    for list in [head, proxyHead] { if let list { clc_list_wipe(list) } }
    (head, proxyHead, addresses, route) = (nil, nil, nil, nil)
  }

  /// Clears potential secrets of an idle handle: all headers, unless they are those of a request without its own, and
  /// a URL with a query.
  func rest() {
    guard let shape else { return reset() }
    reportsWire = false
    if let fields, fields != shape.settings.usualFields {
      _ = clc_set_list(easy, Int32(clc_option_http_header), nil)
      if let head { clc_list_wipe(head) }
      head = nil
      self.fields = nil
    }
    if hasQuery {
      _ = clc_set_pointer(easy, Int32(clc_option_read_url), nil)
      _ = clc_set_pointer(easy, Int32(clc_option_url), nil)
      freeURL()
      url = ""
    }
  }

  /// The current values, which would not be set again.
  var knownFields: [HTTP.Headers.Field]? { fields }
  var knownURL: String { url }

  var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
  static func attempt(at context: UnsafeMutableRawPointer?) -> Attempt? {
    context.flatMap { Unmanaged<Handle>.fromOpaque($0).takeUnretainedValue().attempt }
  }

  var errorText: UnsafeMutablePointer<CChar> { errorBuffer }

  // MARK: Options that differ between similar requests. Each function returns libcurl's error code.

  func set(url: String) -> Int32 {
    guard url != self.url else { return 0 }
    self.url = url
    hasQuery = url.utf8.contains(UInt8(ascii: "?"))
    // An invalid URL is left to libcurl, which reports the reason.
    let read = clc_url_read(url)
    let code = clc_set_pointer(easy, Int32(clc_option_read_url), read.map { UnsafeMutableRawPointer($0) })
    freeURL()
    readURL = read
    return code == 0 ? clc_set_text(easy, Int32(clc_option_url), url) : code
  }

  /// - Parameters:
  ///   - fields: The headers to send.
  ///   - hasBody: Whether a body follows. Only for a handle that is set up for a single request.
  ///   - isTunneled: Whether a proxy tunnels the connection, so that headers meant for the proxy are not sent to the
  ///     host. Only for a handle that is set up for a single request.
  func set(fields: [HTTP.Headers.Field], hasBody: Bool, isTunneled: Bool) -> Int32 {
    guard fields != self.fields else { return 0 }
    // A header that libcurl would add by itself is removed by a name without a value.
    func line(_ field: HTTP.Headers.Field) -> String {
      field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
    }
    let ofProxy = isTunneled ? fields.filter { HTTP.Headers.isSame($0.name, "Proxy-Authorization") } : []
    // The usual Accept is left to libcurl, for which a custom header is more work.
    let usual = OwnConfiguration.accept
    let isUsual = fields.filter { HTTP.Headers.isSame($0.name, usual.name) } == [usual]
    var lines = fields.filter { !(isUsual && $0 == usual) && !ofProxy.contains($0) }.map(line)
    if hasBody, !fields.contains(where: { HTTP.Headers.isSame($0.name, "Expect") }) { lines.append("Expect:") }
    guard let list = Self.list(of: lines) else { return Int32(clc_out_of_memory) }
    let code = clc_set_list(easy, Int32(clc_option_http_header), list)
    if let head { clc_list_wipe(head) }
    head = list
    self.fields = fields
    guard code == 0, !ofProxy.isEmpty else { return code }
    proxyHead = Self.list(of: ofProxy.map(line))
    return proxyHead == nil ? Int32(clc_out_of_memory) : clc_set_list(easy, Int32(clc_option_proxy_header), proxyHead)
  }

  func set(waitsForMultiplexing waits: Bool) -> Int32 {
    guard waits != waitsForMultiplexing else { return 0 }
    waitsForMultiplexing = waits
    return clc_set_long(easy, Int32(clc_option_wait_for_multiplexing), waits ? 1 : 0)
  }

  /// Must only be called after a reset.
  func set(addresses lines: [String]) -> Int32 {
    guard !lines.isEmpty else { return 0 }
    guard let list = Self.list(of: lines) else { return Int32(clc_out_of_memory) }
    addresses = list
    return clc_set_list(easy, Int32(clc_option_resolve), list)
  }

  /// Must only be called after a reset.
  func set(route line: String?) -> Int32 {
    guard let line else { return 0 }
    route = Self.list(of: [line])
    return route == nil ? Int32(clc_out_of_memory) : clc_set_list(easy, Int32(clc_option_connect_to), route)
  }

  /// Sets the addresses again, because libcurl discards them after a while and would then resolve the name by itself.
  func setAddressesAgain() -> Int32 {
    addresses.map { clc_set_list(easy, Int32(clc_option_resolve), $0) } ?? 0
  }

  private static func list(of lines: [String]) -> OpaquePointer? {
    var list: OpaquePointer?
    for line in lines {
      list = clc_list_append(list, line)
      if list == nil { return nil }
    }
    return list
  }
}
