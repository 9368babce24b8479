// SPDX-License-Identifier: Apache-2.0

public import FoundationNetworking
public import RunLoopHTTP

import Foundation

extension HTTP.Request {
  /// Makes a request of Foundation's; nil if that has no address.
  ///
  /// The body is the data or the stream that it has. A stream is opened and read where it may wait, by a queue of
  /// dispatch, and can be sent once; its length is announced if the request has a `Content-Length`. The header fields
  /// are sent in the order of their names. If the request has an `Accept-Encoding` of its own, a response with the
  /// codings that this names is decoded, as `NSURLConnection` does on Apple's systems. The timeout, the policies and
  /// the services of the request are left to the caller.
  public init?(_ request: URLRequest) {
    guard let url = request.url else { return nil }
    self.init(HTTP.Method(request.httpMethod ?? "GET"), url.absoluteString)
    for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
      headers[name] = value
    }
    decodesNamedCodings = true
    // It comes from the body.
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
  /// The same request where a redirect leads; nil if that is no address.
  func following(_ next: HTTP.Request) -> URLRequest? {
    guard let url = URL(string: next.url) else { return nil }
    var request = self
    request.url = url
    request.httpMethod = next.method.rawValue
    for name in (allHTTPHeaderFields ?? [:]).keys where next.headers[name] == nil {
      // It was taken for the body, which goes along.
      if name.lowercased() == "content-length", next.body != nil { continue }
      request.setValue(nil, forHTTPHeaderField: name)
    }
    if next.body == nil {
      request.httpBody = nil
      request.httpBodyStream = nil
    }
    return request
  }

  /// How long nothing may arrive or be sent; nil: indefinitely.
  var idleTimeout: Duration? {
    guard timeoutInterval.isFinite, timeoutInterval > 0, timeoutInterval < 1e9 else { return nil }
    return .seconds(timeoutInterval)
  }
}
