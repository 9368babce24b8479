// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import RunLoopCore
import RunLoopHTTP

/// Translates between a connection and Foundation's types, and uses Foundation's cookie storage.
///
/// Subclasses override the methods they are interested in.
class ConnectionBorder: ConnectionDelegate, @unchecked Sendable {
  // Sendable: the lock guards the request. Only `connectionWillAsk` uses `usedStream`, and it is called serially.

  private let lock = Lock()
  private var request: URLRequest
  private var usedStream: InputStream?

  init(_ request: URLRequest) { self.request = request }

  var currentRequest: URLRequest { lock.withLock { request } }

  // MARK: To be overridden. Called on the threads of the connection's delegate.

  func willSend(_ next: URLRequest, after response: HTTPURLResponse) -> URLRequest? { next }
  func isAsked(_ challenge: URLAuthenticationChallenge) { challenge.sender?.performDefaultHandling(for: challenge) }
  var usesCredentialStorage: Bool { true }
  func newBodyStream(for request: URLRequest) -> InputStream? { nil }
  func didReceive(_ response: HTTPURLResponse) {}
  func didReceive(_ data: Data) {}
  func didSend(_ count: Int64, of total: Int64?) {}
  func didEnd(_ error: URLError?) {}

  // MARK: The connection's delegate

  func connectionWillAsk(_ request: HTTP.Request, isFirst: Bool) throws(HTTP.Error) -> HTTP.Request {
    var prepared = request
    let current = currentRequest
    guard current.cachePolicy != .returnCacheDataDontLoad else {
      throw HTTP.Error(.notInCache, "the request asks for the cache alone, and there is no cache")
    }
    if let stream = current.httpBodyStream, request.body != nil {
      if !isFirst, stream === usedStream {
        guard let fresh = newBodyStream(for: current) else {
          throw HTTP.Error(.invalidRequest, "the body cannot be sent again")
        }
        lock.withLock { self.request.httpBodyStream = fresh }
        prepared.body = HTTP.Request(currentRequest)?.body
      }
      usedStream = currentRequest.httpBodyStream
    }
    if current.httpShouldHandleCookies, let url = URL(string: request.url),
      let cookies = HTTPCookieStorage.shared.cookies(for: url), !cookies.isEmpty
    {
      let field = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
      prepared.headers["Cookie"] = prepared.headers["Cookie"].map { "\($0); \(field ?? "")" } ?? field
    }
    return prepared
  }

  func connection(storeCookiesOf response: HTTP.Response) {
    guard currentRequest.httpShouldHandleCookies, let url = URL(string: response.url) else { return }
    // Parsed individually, because their dates contain commas.
    for value in response.headers.values(of: "Set-Cookie") {
      let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url)
      HTTPCookieStorage.shared.setCookies(cookies, for: url, mainDocumentURL: currentRequest.mainDocumentURL)
    }
  }

  func connection(willFollow next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request? {
    guard let answer = response.urlResponse, let following = currentRequest.following(next),
      let wanted = willSend(following, after: answer), var request = HTTP.Request(wanted)
    else { return nil }
    request.maximumBodySize = next.maximumBodySize
    lock.withLock { self.request = wanted }
    return request
  }

  func connection(isAsked challenge: HTTP.ConnectionChallenge) {
    let space = URLProtectionSpace(
      host: challenge.host, port: challenge.port,
      protocol: challenge.isTLS ? NSURLProtectionSpaceHTTPS : NSURLProtectionSpaceHTTP, realm: challenge.realm,
      authenticationMethod: challenge.scheme == "digest"
        ? NSURLAuthenticationMethodHTTPDigest : NSURLAuthenticationMethodHTTPBasic)
    let proposed = usesCredentialStorage ? URLCredentialStorage.shared.defaultCredential(for: space) : nil
    isAsked(
      URLAuthenticationChallenge(
        protectionSpace: space, proposedCredential: proposed, previousFailureCount: challenge.failures,
        failureResponse: challenge.response.urlResponse, error: nil, sender: ChallengeSender(challenge)))
  }

  func connection(didReceive response: HTTP.Response) {
    if let answer = response.urlResponse { didReceive(answer) }
  }

  func connection(didReceive bytes: [UInt8]) { didReceive(Data(bytes)) }
  func connection(didSend count: Int64, of total: Int64?) { didSend(count, of: total) }

  func connectionDidEnd(_ error: HTTP.Error?) {
    // A cancelled connection reports nothing, so this is a cancelled challenge.
    guard let error, error.code == .cancelled else { return didEnd(error?.urlError) }
    didEnd(URLError(.userCancelledAuthentication, userInfo: error.urlError.userInfo))
  }
}

/// Forwards the first response to a challenge to the connection.
final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
  private let challenge: HTTP.ConnectionChallenge

  init(_ challenge: HTTP.ConnectionChallenge) { self.challenge = challenge }

  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
    guard let user = credential.user, let password = credential.password else {
      return continueWithoutCredential(for: challenge)
    }
    if credential.persistence != .none {
      URLCredentialStorage.shared.set(credential, for: challenge.protectionSpace)
    }
    self.challenge.answer(.credential(HTTP.Credential(user: user, password: password)))
  }

  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { self.challenge.answer(.proceed) }
  func cancel(_ challenge: URLAuthenticationChallenge) { self.challenge.answer(.cancel) }

  func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
    guard let proposed = challenge.proposedCredential, challenge.previousFailureCount == 0 else {
      return continueWithoutCredential(for: challenge)
    }
    use(proposed, for: challenge)
  }

  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
    continueWithoutCredential(for: challenge)
  }
}
