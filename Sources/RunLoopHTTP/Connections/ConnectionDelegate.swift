// SPDX-License-Identifier: Apache-2.0

/// Who is asked and called by a connection: one call at a time, on the loops that the connection is scheduled on.
package protocol ConnectionDelegate: AnyObject, Sendable {
  /// A request is about to be made: the first on the thread that starts the connection, the others where it calls out.
  ///
  /// - Returns: The request with additions such as cookies.
  /// - Throws: The reason it cannot be made.
  func connectionWillAsk(_ request: HTTP.Request, isFirst: Bool) throws(HTTP.Error) -> HTTP.Request
  /// An answer leads elsewhere.
  ///
  /// - Returns: What to ask for; nil: the answer is the answer.
  func connection(willFollow next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request?
  /// A server wants to know who asks; the challenge is to be answered, at any time and by any thread.
  func connection(isAsked challenge: HTTP.ConnectionChallenge)
  /// An answer sets cookies; called by the source for cookies, before the answer is reported.
  func connection(storeCookiesOf response: HTTP.Response)
  /// The answer begins; what was reported of an earlier one is to be forgotten.
  func connection(didReceive response: HTTP.Response)
  func connection(didReceive bytes: [UInt8])
  func connection(didSend count: Int64, of total: Int64?)
  /// It has ended; the last call, made once.
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
  /// What a server asks for before it answers.
  package final class ConnectionChallenge: Sendable {
    /// What the server gets.
    package enum Answer: Sendable {
      case credential(Credential)
      /// No credential: the answer that asks for one is the answer.
      case proceed
      /// The connection ends with ``HTTP/Error/Code/cancelled``.
      case cancel
    }

    /// "basic" or "digest".
    package let scheme: String
    package let realm: String?
    package let host: String
    package let port: Int
    package let isTLS: Bool
    /// How many credentials the server has not accepted.
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

    /// Answers; only the first answer counts.
    ///
    /// Can be called from any thread.
    package func answer(_ answer: Answer) { connection.answer(answer, generation) }
  }
}
