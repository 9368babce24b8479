// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

final class CookieJar: @unchecked Sendable {
  // Sendable: the cookies are guarded by the lock.
  private let lock = Lock()
  private var cookies: [HTTP.Cookie] = []

  /// The maximum number of cookies in all and per domain, beyond which the oldest ones are evicted.
  static let (limit, domainLimit) = (3000, 50)

  /// Stores the cookies that a response sets, and returns them, including expired ones, which removed a cookie.
  @discardableResult
  func take(_ headers: HTTP.Headers, from address: WebAddress, now: Int64 = WebDate.now) -> [HTTP.Cookie] {
    let set = headers.values(of: "Set-Cookie").compactMap { HTTP.Cookie($0, from: address, now: now) }
    guard !set.isEmpty else { return [] }
    var taken: [HTTP.Cookie] = []
    lock.withLock {
      for cookie in set {
        // RFC 6265bis, section 5.7: an insecure connection must not shadow a secure cookie.
        let isShadow = cookies.contains { $0.isSecure && cookie.shadows($0) && !$0.hasExpired(at: now) }
        guard address.isTLS || !isShadow else { continue }
        taken.append(cookie)
        keep(cookie, now)
      }
    }
    return taken
  }

  /// Stores cookies for the program, where an expired cookie removes the existing one.
  func set(_ set: [HTTP.Cookie], now: Int64 = WebDate.now) {
    lock.withLock { for cookie in set { keep(cookie, now) } }
  }

  /// Stores or removes a cookie; requires the lock.
  private func keep(_ cookie: HTTP.Cookie, _ now: Int64) {
    cookies.removeAll { $0.isSame(as: cookie) || $0.hasExpired(at: now) }
    guard !cookie.hasExpired(at: now) else { return }
    let ofDomain = cookies.indices.filter { cookies[$0].domain == cookie.domain }
    if ofDomain.count >= Self.domainLimit { cookies.remove(at: ofDomain[0]) }
    if cookies.count >= Self.limit { cookies.removeFirst() }
    cookies.append(cookie)
  }

  /// Returns the value of the `Cookie` header for a URL, or nil if no cookie applies.
  func header(for address: WebAddress, now: Int64 = WebDate.now) -> String? {
    let meant = lock.withLock { cookies.filter { $0.isMeant(for: address, now: now) } }
    guard !meant.isEmpty else { return nil }
    // Longer paths first; the sort is stable.
    return meant.sorted { $0.path.utf8.count > $1.path.utf8.count }.map { "\($0.name)=\($0.value)" }
      .joined(separator: "; ")
  }

  var all: [HTTP.Cookie] { lock.withLock { cookies.filter { !$0.hasExpired(at: WebDate.now) } } }
  func removeAll() { lock.withLock { cookies = [] } }
}
