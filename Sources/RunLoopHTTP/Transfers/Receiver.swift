// SPDX-License-Identifier: Apache-2.0

/// Receives the body and the outcome of a transfer.
///
/// All methods are called on the loader's thread, and never with a lock held.
protocol Receiver: AnyObject, Sendable {
  /// Prepares for the start, and returns the part of the body that is already present.
  func prepare() throws(HTTP.Error) -> OperationState.Part?
  /// Whether received bytes can be discarded, so that the body may start over.
  var canRestart: Bool { get }
  /// The size limit of the body in bytes if neither the request nor the client sets one.
  var defaultLimit: Int64? { get }
  /// Called before the body of a response is delivered.
  ///
  /// - Parameter offset: The offset at which the body continues what was received before; 0 means that it starts over.
  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error)
  /// Receives decoded bytes. Returns whether more can be accepted now.
  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool
  /// Whether a complete body needs no further processing.
  var closesAtOnce: Bool { get }
  /// Finishes processing a complete body, such as by moving a file into place.
  ///
  /// - Parameter done: Called once, from any thread, if the processing finishes later.
  /// - Returns: Whether processing finished synchronously, in which case `done` is not called.
  func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) throws(HTTP.Error) -> Bool
  /// Called once when the request has ended. No other method is called after it.
  func finish(_ result: Result<HTTP.Response, HTTP.Error>)
  /// Returns the request to make for a redirect, or nil to reject it.
  func redirect(_ next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request?
  /// Whether the program handles authentication challenges.
  var answersChallenges: Bool { get }
  /// Returns the credential for a challenge, or nil to have the response delivered instead.
  /// Called when a response, which need not be the final one, has set cookies.
  func answer(_ challenge: HTTP.AuthenticationChallenge) -> HTTP.Credential?
  func note(_ cookies: [HTTP.Cookie])
  /// Called when the state or the progress has changed.
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
