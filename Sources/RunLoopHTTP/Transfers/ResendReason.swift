// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The reason a request was sent again.
  public enum ResendReason: Sendable, Hashable {
    /// The server has not processed the request: it rejected the stream of HTTP/2, or ended the connection before it
    /// had received anything of the request, or responded with 421; or nothing of the request was written.
    ///
    /// The method does not matter.
    case unprocessed
    /// The connection ended before the response, without a reason: it was a kept one, or one of HTTP/2. The method is
    /// idempotent.
    case connectionEnded
    /// As ``Retry`` says.
    case retry
    /// For a redirect.
    case redirect
    /// With a credential that the server or the proxy asked for.
    case challenge
    /// Without `Expect`, which the server does not support.
    case expectation
    /// The operation was resumed.
    case resumption
    /// An interceptor asked for it.
    case interceptor
  }
}
