// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking

/// The methods that any delegate of a connection can implement.
///
/// All methods have a default implementation. They are called one at a time, on the loops that the connection is
/// scheduled on and in its modes, or on its queue.
public protocol NSURLConnectionDelegate: AnyObject {
  /// Called when the connection has failed, as the last call.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - error: A `URLError`, whose underlying error is an `HTTP.Error`.
  func connection(_ connection: NSURLConnection, didFailWithError error: any Error)
  /// Returns whether to propose credentials of `URLCredentialStorage`; the default implementation returns true.
  func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool
  /// Called for an authentication challenge.
  ///
  /// Respond through the challenge's sender, at any time and on any thread; nothing else is reported until then. By
  /// default, the proposed credential is used once. If the server rejects it, the response is delivered.
  func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
}

extension NSURLConnectionDelegate {
  /// Has no effect.
  public func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {}
  /// Returns true.
  public func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool { true }
  /// Uses the proposed credential once.
  public func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
    challenge.sender?.performDefaultHandling(for: challenge)
  }
}

/// The methods that a delegate can implement to receive the response.
public protocol NSURLConnectionDataDelegate: NSURLConnectionDelegate {
  /// Called for a redirect.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - request: The request that would be made. It has no headers with secrets if it leads to another origin.
  ///   - response: The response that redirects. It is never nil, because the first request is not reported.
  /// - Returns: The request to make, or nil to deliver the redirecting response with its body.
  func connection(
    _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
  ) -> URLRequest?
  /// Called when the response begins; everything received before has to be discarded.
  func connection(_ connection: NSURLConnection, didReceive response: URLResponse)
  /// Called with the part of the body that has arrived during this pass of the loop.
  func connection(_ connection: NSURLConnection, didReceive data: Data)
  /// Called when the body has to be sent again, after a redirect or a challenge.
  ///
  /// - Returns: An unopened stream. If it is nil, which is the default, the connection fails.
  func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream?
  /// Called when more of the body has been sent.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - bytesWritten: The number of bytes since the last call.
  ///   - totalBytesWritten: The number of bytes so far.
  ///   - totalBytesExpectedToWrite: The length of the body; -1 if it is unknown.
  func connection(
    _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
    totalBytesExpectedToWrite: Int)
  /// Called when the body is complete, as the last call.
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
