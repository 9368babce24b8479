// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The cookies of a client.
final class CookieJar: @unchecked Sendable {
  // Sendable: the cookies are guarded by the lock.
  private let lock = Lock()
  private var cookies: [HTTP.Cookie] = []

  /// How many cookies are kept in all and of a domain; the oldest go first.
  static let (limit, domainLimit) = (3000, 50)

  /// Takes what an answer sets, and returns what was taken; a cookie that has ended is one that was removed.
  @discardableResult
  func take(_ headers: HTTP.Headers, from address: WebAddress, now: Int64 = WebDate.now) -> [HTTP.Cookie] {
    let set = headers.values(of: "Set-Cookie").compactMap { HTTP.Cookie($0, from: address, now: now) }
    guard !set.isEmpty else { return [] }
    var taken: [HTTP.Cookie] = []
    lock.withLock {
      for cookie in set {
        // RFC 6265bis, section 5.7: a connection that anybody can change leaves alone what is safe from that.
        guard address.isTLS || !cookies.contains(where: { $0.isSecure && cookie.shadows($0) }) else { continue }
        taken.append(cookie)
        keep(cookie, now)
      }
    }
    return taken
  }

  /// Takes what the program sets; a cookie that has ended removes the one that is there.
  func set(_ set: [HTTP.Cookie], now: Int64 = WebDate.now) {
    lock.withLock { for cookie in set { keep(cookie, now) } }
  }

  /// Under the lock.
  private func keep(_ cookie: HTTP.Cookie, _ now: Int64) {
    cookies.removeAll { $0.isSame(as: cookie) }
    guard cookie.expires.map({ $0 > now }) ?? true else { return }
    let ofDomain = cookies.indices.filter { cookies[$0].domain == cookie.domain }
    if ofDomain.count >= Self.domainLimit { cookies.remove(at: ofDomain[0]) }
    if cookies.count >= Self.limit { cookies.removeFirst() }
    cookies.append(cookie)
  }

  /// What is sent to an address; nil for nothing.
  func header(for address: WebAddress, now: Int64 = WebDate.now) -> String? {
    let meant = lock.withLock { cookies.filter { $0.isMeant(for: address, now: now) } }
    guard !meant.isEmpty else { return nil }
    // Those of longer paths first; the sort is stable.
    return meant.sorted { $0.path.utf8.count > $1.path.utf8.count }.map { "\($0.name)=\($0.value)" }
      .joined(separator: "; ")
  }

  var all: [HTTP.Cookie] { lock.withLock { cookies } }
  func removeAll() { lock.withLock { cookies = [] } }
}
