// SPDX-License-Identifier: Apache-2.0

/// Who gets what comes of a transfer.
///
/// The loader's thread; never within a lock.
protocol Receiver: AnyObject, Sendable {
  /// Gets ready for the start, and returns what it has of the body already.
  func prepare() throws(HTTP.Error) -> OperationState.Part?
  /// Whether what it has taken can be taken back, so that an answer may begin afresh.
  var canRestart: Bool { get }
  /// How many bytes it takes where neither the request nor the client says.
  var defaultLimit: Int64? { get }
  /// The answer is about to come.
  ///
  /// - Parameter offset: Where its body goes on in what was taken before; zero: it begins afresh.
  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error)
  /// Takes decoded bytes, and returns whether it takes more now.
  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool
  /// Whether nothing is to be done when the body is complete.
  var closesAtOnce: Bool { get }
  /// The body is complete, and is to be put away.
  ///
  /// - Parameter done: Called once by any thread when that was done later.
  /// - Returns: Whether it was done at once; `done` is not called then.
  func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) throws(HTTP.Error) -> Bool
  /// The request has ended; called once, and last.
  func finish(_ result: Result<HTTP.Response, HTTP.Error>)
  /// Whether a redirect is followed, and how; nil: it is rejected.
  func redirect(_ next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request?
  /// Whether the program answers challenges.
  var answersChallenges: Bool { get }
  /// What a challenge is answered with; nil: not at all, and the answer is delivered.
  func answer(_ challenge: HTTP.AuthenticationChallenge) -> HTTP.Credential?
  /// An answer has set cookies, which may be one that is not the last.
  func note(_ cookies: [HTTP.Cookie])
  /// The state or the progress has changed.
  func note(_ state: HTTP.Operation.State, _ progress: HTTP.Progress)
}

extension Receiver {
  func prepare() throws(HTTP.Error) -> OperationState.Part? { nil }
  var closesAtOnce: Bool { false }
  func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) throws(HTTP.Error) -> Bool { true }
  func redirect(_ next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request? { next }
  var answersChallenges: Bool { false }
  func answer(_ challenge: HTTP.AuthenticationChallenge) -> HTTP.Credential? { nil }
  func note(_ cookies: [HTTP.Cookie]) {}
  func note(_ state: HTTP.Operation.State, _ progress: HTTP.Progress) {}
}
