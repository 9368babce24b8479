// SPDX-License-Identifier: Apache-2.0

public import FoundationNetworking
public import RunLoopHTTP

import Foundation

extension HTTP.Request {
  /// Creates a request from a Foundation request, or returns nil if that has no URL.
  ///
  /// The body is the request's data or stream. A stream is opened and read on a dispatch queue, where it may block,
  /// and can be sent only once; its length is announced if the request has a `Content-Length`. The headers are sent in
  /// the order of their names. If the request has its own `Accept-Encoding`, a response with one of these codings is
  /// decoded, like `NSURLConnection` does on Apple platforms. The timeout, the policies and the services of the
  /// request are left to the caller.
  public init?(_ request: URLRequest) {
    guard let url = request.url else { return nil }
    self.init(HTTP.Method(request.httpMethod ?? "GET"), url.absoluteString)
    for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
      headers[name] = value
    }
    decodesNamedCodings = true
    // The length is derived from the body.
    let length = headers["Content-Length"].flatMap { Int64($0) }
    headers["Content-Length"] = nil
    headers["Transfer-Encoding"] = nil
    if let data = request.httpBody {
      body = .bytes(Array(data))
    } else if let stream = request.httpBodyStream {
      let stream = SendableStream(stream)
      body = .stream(length: length) { StreamChunks(stream) }
    }
  }
}

extension URLRequest {
  /// Returns the request for a redirect, or nil if its URL is invalid for Foundation.
  func following(_ next: HTTP.Request) -> URLRequest? {
    guard let url = URL(string: next.url) else { return nil }
    var request = self
    request.url = url
    request.httpMethod = next.method.rawValue
    for name in (allHTTPHeaderFields ?? [:]).keys where next.headers[name] == nil {
      // Consumed when the body was created, which is kept.
      if name.lowercased() == "content-length", next.body != nil { continue }
      request.setValue(nil, forHTTPHeaderField: name)
    }
    if next.body == nil {
      request.httpBody = nil
      request.httpBodyStream = nil
    }
    return request
  }

  /// The longest time without any data sent or received; nil means indefinitely.
  var idleTimeout: Duration? {
    guard timeoutInterval.isFinite, timeoutInterval > 0, timeoutInterval < 1e9 else { return nil }
    return .seconds(timeoutInterval)
  }
}
