// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import RunLoopURLConnection

/// A connection's delegate that records the thread and the kind of call-out of each call.
final class WatchedDelegate: NSURLConnectionDataDelegate, Sendable {
  let steps = Record()
  private let place: @Sendable () -> String
  private let meeting: Meeting
  private let body = Found("")
  let ends = Tally()
  /// Called on the loop when the response begins.
  let onResponse: @Sendable () -> Void
  let onEnd: @Sendable () -> Void

  init(
    _ meeting: Meeting, onResponse: @escaping @Sendable () -> Void = {}, onEnd: @escaping @Sendable () -> Void = {},
    _ place: @escaping @Sendable () -> String
  ) {
    self.meeting = meeting
    self.onResponse = onResponse
    self.onEnd = onEnd
    self.place = place
  }

  private func note(_ step: String) {
    steps.write("\(step): \(place())")
    meeting.announce()
  }

  func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
    note("response")
    onResponse()
  }

  func connection(_ connection: NSURLConnection, didReceive data: Data) {
    body.value += String(decoding: data, as: UTF8.self)
    // The body may arrive in parts.
    if body.value == LoopbackServer.body { note("body") }
  }

  func connectionDidFinishLoading(_ connection: NSURLConnection) { hasEnded("end") }

  func connection(_ connection: NSURLConnection, didFailWithError error: any Error) { hasEnded("\(error)") }

  private func hasEnded(_ step: String) {
    ends.add()
    note(step)
    onEnd()
  }
}

/// Connections of Foundation's API to a server, and the cookies that Foundation stores for them.
enum Connections {
  static func make(_ address: String, _ delegate: WatchedDelegate) -> NSURLConnection? {
    URL(string: address).flatMap {
      NSURLConnection(request: URLRequest(url: $0), delegate: delegate, startImmediately: false)
    }
  }

  /// Whether a cookie for a URL is stored.
  static func hasCookie(_ address: String) -> Bool {
    URL(string: address).flatMap { HTTPCookieStorage.shared.cookies(for: $0) }?.isEmpty == false
  }

  static func forgetCookies(_ address: String) {
    guard let url = URL(string: address) else { return }
    for cookie in HTTPCookieStorage.shared.cookies(for: url) ?? [] { HTTPCookieStorage.shared.deleteCookie(cookie) }
  }
}
