// SPDX-License-Identifier: Apache-2.0

import CLibCurl

/// One of the library's transfers, with what it is set up for: a request like the one before sets only what differs.
///
/// The loader's thread.
final class Handle {
  // Nothing is called while a variable is being changed, so that those of each request are not checked for overlapping
  // accesses.

  /// What two requests have in common that are set up alike but for the address, the head and the wait for a
  /// connection.
  ///
  /// It is an object that never changes, so that a copy is one reference.
  final class Shape: Equatable {
    /// How they are made; held, so that no other configuration takes its place.
    let settings: OwnConfiguration
    let isTLS: Bool
    let isFresh: Bool
    /// What the library is given of the host's addresses.
    let addresses: [String]
    /// Where it connects to instead of the host.
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
  /// Whose exchange it makes.
  @exclusivity(unchecked) var attempt: Attempt?
  /// What it is set up for; nil if nothing is set that the next request may keep.
  @exclusivity(unchecked) var shape: Shape? {
    didSet { isSetUp = shape != nil }
  }
  @exclusivity(unchecked) private(set) var isSetUp = false

  @exclusivity(unchecked) private var url = ""
  @exclusivity(unchecked) private var hasQuery = false
  @exclusivity(unchecked) private var fields: [HTTP.Headers.Field]?
  @exclusivity(unchecked) private var waitsForMultiplexing = false
  // What the library reads as long as it is set up so.
  /// The address as the library reads it, so that it does so once and not in each request.
  private var readURL: OpaquePointer?
  private var head: OpaquePointer?
  private var proxyHead: OpaquePointer?
  private var addresses: OpaquePointer?
  private var route: OpaquePointer?
  private let errorBuffer: UnsafeMutablePointer<CChar>

  private static let errorSize = 256

  /// Makes one; nil if there is no memory.
  init?() {
    guard let easy = clc_easy_make() else { return nil }
    self.easy = easy
    errorBuffer = .allocate(capacity: Self.errorSize)
    errorBuffer.initialize(repeating: 0, count: Self.errorSize)
  }

  /// Gives everything back; it must not be used afterwards.
  func free() {
    attempt = nil
    clc_easy_free(easy)
    freeURL()
    freeLists()
    errorBuffer.deallocate()
  }

  /// Whether the bytes of the body are reported as they stand on the wire, from the next ones on.
  var reportsWire = false {
    didSet { if reportsWire != oldValue { _ = clc_set_long(easy, Int32(clc_option_verbose), reportsWire ? 1 : 0) } }
  }

  /// Forgets what it was set up for.
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

  /// Forgets what may be secret, now that nobody uses it: all fields but those of a request that has none of its own,
  /// and an address with a query.
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

  /// What it would not set again.
  var knownFields: [HTTP.Headers.Field]? { fields }
  var knownURL: String { url }

  /// What the library calls back with.
  var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
  static func attempt(at context: UnsafeMutableRawPointer?) -> Attempt? {
    context.flatMap { Unmanaged<Handle>.fromOpaque($0).takeUnretainedValue().attempt }
  }

  /// Where the library writes what was wrong.
  var errorText: UnsafeMutablePointer<CChar> { errorBuffer }

  // What differs between requests that are alike. Each returns the library's code.

  func set(url: String) -> Int32 {
    guard url != self.url else { return 0 }
    self.url = url
    hasQuery = url.utf8.contains(UInt8(ascii: "?"))
    // One that cannot be read is left to the library, which says why.
    let read = clc_url_read(url)
    let code = clc_set_pointer(easy, Int32(clc_option_read_url), read.map { UnsafeMutableRawPointer($0) })
    freeURL()
    readURL = read
    return code == 0 ? clc_set_text(easy, Int32(clc_option_url), url) : code
  }

  /// - Parameters:
  ///   - fields: The fields of the head.
  ///   - hasBody: Whether a body follows; only for a handle that is set up for one request.
  ///   - isTunneled: Whether a proxy connects to the host: it gets what is meant for it, and the host does not. Only
  ///     for a handle that is set up for one request.
  func set(fields: [HTTP.Headers.Field], hasBody: Bool, isTunneled: Bool) -> Int32 {
    guard fields != self.fields else { return 0 }
    // What the library would add by itself is taken away by a name without a value.
    func line(_ field: HTTP.Headers.Field) -> String {
      field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
    }
    let ofProxy = isTunneled ? fields.filter { HTTP.Headers.isSame($0.name, "Proxy-Authorization") } : []
    // The usual Accept is added by the library, which has more work with a field of ours.
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

  /// Only after a reset.
  func set(addresses lines: [String]) -> Int32 {
    guard !lines.isEmpty else { return 0 }
    guard let list = Self.list(of: lines) else { return Int32(clc_out_of_memory) }
    addresses = list
    return clc_set_list(easy, Int32(clc_option_resolve), list)
  }

  /// Only after a reset.
  func set(route line: String?) -> Int32 {
    guard let line else { return 0 }
    route = Self.list(of: [line])
    return route == nil ? Int32(clc_out_of_memory) : clc_set_list(easy, Int32(clc_option_connect_to), route)
  }

  /// Lets the library take the addresses again: it forgets them after a while, and would look the name up by itself.
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
