// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking

/// What every delegate of a connection may be asked or called with.
///
/// All functions have a default: a delegate has those that it needs. They are called on the loops that the connection
/// is scheduled on, in its modes, or by its queue; one at a time.
public protocol NSURLConnectionDelegate: AnyObject {
  /// The connection has ended without an answer; the last call.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - error: A `URLError`, whose underlying error is an `HTTP.Error`.
  func connection(_ connection: NSURLConnection, didFailWithError error: any Error)
  /// Whether credentials of `URLCredentialStorage` are proposed; by default they are.
  func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool
  /// A server wants to know who asks.
  ///
  /// The challenge's sender is to be answered, at any time and on any thread; until then nothing else is reported. By
  /// default the proposed credential is used once, and then the answer that asks for another is the answer.
  func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
}

extension NSURLConnectionDelegate {
  /// Has no effect.
  public func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {}
  /// Returns true.
  public func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool { true }
  /// Uses the proposed credential, once.
  public func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
    challenge.sender?.performDefaultHandling(for: challenge)
  }
}

/// What a delegate that takes the answer may be asked or called with.
public protocol NSURLConnectionDataDelegate: NSURLConnectionDelegate {
  /// An answer leads elsewhere.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - request: What would be asked for. Fields that are secret are not in it if it leads to another origin.
  ///   - response: The answer that asks for it. It is never nil: the first request is not reported.
  /// - Returns: What to ask for; nil: the answer is the answer, and its body follows.
  func connection(
    _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
  ) -> URLRequest?
  /// The answer begins; what arrived before is to be forgotten.
  func connection(_ connection: NSURLConnection, didReceive response: URLResponse)
  /// More of the body has arrived: all that has in this pass of the loop.
  func connection(_ connection: NSURLConnection, didReceive data: Data)
  /// The body is to be sent again, after a redirect or a challenge.
  ///
  /// - Returns: A stream that was not opened; nil, the default: the connection fails.
  func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream?
  /// More of the body was sent.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - bytesWritten: How many bytes since the last call.
  ///   - totalBytesWritten: How many in all.
  ///   - totalBytesExpectedToWrite: How many the body has; -1 if that is not known.
  func connection(
    _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
    totalBytesExpectedToWrite: Int)
  /// The body is complete; the last call.
  func connectionDidFinishLoading(_ connection: NSURLConnection)
}

extension NSURLConnectionDataDelegate {
  /// Returns the request.
  public func connection(
    _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
  ) -> URLRequest? { request }
  /// Has no effect.
  public func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {}
  /// Has no effect.
  public func connection(_ connection: NSURLConnection, didReceive data: Data) {}
  /// Returns nil.
  public func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream? { nil }
  /// Has no effect.
  public func connection(
    _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
    totalBytesExpectedToWrite: Int
  ) {}
  /// Has no effect.
  public func connectionDidFinishLoading(_ connection: NSURLConnection) {}
}
