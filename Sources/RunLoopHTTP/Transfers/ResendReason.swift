// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The reason a request was sent again.
  public enum ResendReason: Sendable, Hashable {
    /// The server did not process the request: it rejected the HTTP/2 stream, closed the connection before receiving
    /// any of the request, or responded with 421; or nothing of the request was written.
    ///
    /// The method does not matter.
    case unprocessed
    /// A reused or HTTP/2 connection ended before the response, without a reason. The method is idempotent.
    case connectionEnded
    /// The ``Retry`` policy applied.
    case retry
    /// The request was redirected.
    case redirect
    /// The server or the proxy asked for a credential.
    case challenge
    /// The server does not support `Expect`, so the request was sent again without it.
    case expectation
    /// The operation was resumed.
    case resumption
    /// An interceptor asked for it.
    case interceptor
  }
}
