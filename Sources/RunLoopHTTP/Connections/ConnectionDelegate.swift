// SPDX-License-Identifier: Apache-2.0

/// The delegate of a connection, called one method at a time on the loops that the connection is scheduled on.
package protocol ConnectionDelegate: AnyObject, Sendable {
  /// Called before each request: on the thread that starts the connection for the first, and on its loops for the
  /// others.
  ///
  /// - Returns: The request with additions such as cookies.
  /// - Throws: The reason the request cannot be made.
  func connectionWillAsk(_ request: HTTP.Request, isFirst: Bool) throws(HTTP.Error) -> HTTP.Request
  /// Called for a redirect.
  ///
  /// - Returns: The request to make, or nil to deliver the redirecting response.
  func connection(willFollow next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request?
  /// Called for an authentication challenge. The response can be given at any time and from any thread.
  func connection(isAsked challenge: HTTP.ConnectionChallenge)
  /// Called when a response sets cookies, by the cookie source, before the response is reported.
  func connection(storeCookiesOf response: HTTP.Response)
  /// Called when a response begins. Anything reported of an earlier response has to be discarded.
  func connection(didReceive response: HTTP.Response)
  func connection(didReceive bytes: [UInt8])
  func connection(didSend count: Int64, of total: Int64?)
  /// Called once when the connection has ended. It is the last call.
  func connectionDidEnd(_ error: HTTP.Error?)
}

extension ConnectionDelegate {
  package func connectionWillAsk(_ request: HTTP.Request, isFirst: Bool) -> HTTP.Request { request }
  package func connection(willFollow next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request? { next }
  package func connection(isAsked challenge: HTTP.ConnectionChallenge) { challenge.answer(.proceed) }
  package func connection(storeCookiesOf response: HTTP.Response) {}
  package func connection(didSend count: Int64, of total: Int64?) {}
}

extension HTTP {
  /// An authentication challenge from a server.
  package final class ConnectionChallenge: Sendable {
    /// A response to a challenge.
    package enum Answer: Sendable {
      case credential(Credential)
      /// Send no credential and deliver the response that asked for one.
      case proceed
      /// End the connection with ``HTTP/Error/Code/cancelled``.
      case cancel
    }

    /// The scheme, "basic" or "digest".
    package let scheme: String
    package let realm: String?
    package let host: String
    package let port: Int
    package let isTLS: Bool
    /// The number of credentials that the server has rejected.
    package let failures: Int
    package let response: Response
    private let generation: Int
    private let connection: Connection

    init(
      _ asked: Challenge, _ address: WebAddress, _ response: Response, _ failures: Int, _ connection: Connection,
      generation: Int
    ) {
      scheme = asked.scheme
      realm = asked.parameters["realm"]
      host = address.host
      port = Int(address.port)
      isTLS = address.isTLS
      self.failures = failures
      self.response = response
      self.generation = generation
      self.connection = connection
    }

    /// Responds to the challenge.
    ///
    /// Only the first response counts. Can be called from any thread.
    package func answer(_ answer: Answer) { connection.answer(answer, generation) }
  }
}
