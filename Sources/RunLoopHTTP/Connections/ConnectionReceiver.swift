// SPDX-License-Identifier: Apache-2.0

/// Forwards the events of one of a connection's requests to the connection.
final class ConnectionReceiver: Receiver, @unchecked Sendable {
  // Sendable: used only by the loader's thread, except for the transfer, which is set before that begins.

  private let connection: HTTP.Connection
  /// The request without the delegate's additions.
  private let request: HTTP.Request
  private let redirects: Int
  private let generation: Int
  weak var transfer: Transfer?
  private var sent: Int64 = 0
  /// The number of bytes received after the request was superseded.
  private var drained = 0

  init(_ connection: HTTP.Connection, _ request: HTTP.Request, _ redirects: Int, _ generation: Int) {
    self.connection = connection
    self.request = request
    self.redirects = redirects
    self.generation = generation
  }

  // The delegate discards the earlier response when another one begins.
  var canRestart: Bool { true }
  var closesAtOnce: Bool { true }
  var defaultLimit: Int64? { nil }

  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) {
    if response.headers["Set-Cookie"] != nil { connection.postCookies(of: response, generation) }
    guard offset == 0 else { return }
    guard let address = try? WebAddress(request.url) else {
      post(.response(response))
      return
    }
    let hop = HTTP.Hop(request, at: address, redirects: redirects)
    if let next = try hop.next(after: response.status, response.headers, maximum: connection.maximumRedirects) {
      post(.redirect(next.request(from: request), response))
    } else if response.status == 401, address.user == nil,
      let asked = Challenge.best(of: response.headers, body: request.body)
    {
      post(.challenge(asked, address, response))
    } else {
      post(.response(response))
    }
  }

  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool {
    guard !bytes.isEmpty else { return true }
    guard !connection.isOver(generation) else {
      drained += bytes.count
      if drained > Transfer.drainLimit { transfer?.cancel() }
      return true
    }
    return post(.data(Array(bytes)))
  }

  func note(_ state: HTTP.Operation.State, _ progress: HTTP.Progress) {
    guard progress.sent != sent, state != .finished else { return }
    sent = progress.sent
    if sent > 0 { post(.sent(sent, of: progress.totalToSend)) }
  }

  func finish(_ result: Result<HTTP.Response, HTTP.Error>) {
    switch result {
    case .success: post(.end(nil))
    case .failure(let error): post(.end(error))
    }
  }

  @discardableResult
  private func post(_ event: ConnectionMail.Event) -> Bool { connection.post(event, generation) }
}
