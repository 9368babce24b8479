// SPDX-License-Identifier: Apache-2.0

extension HTTPTestServer {
  /// A request that a server has received.
  ///
  /// All methods can be called from any thread; they are performed on the server's loop in order. They have no effect
  /// once the connection is over.
  public struct Request: Sendable {
    /// The method, such as "GET".
    public let method: String
    /// The request target, such as "/path?query".
    public let path: String
    /// The headers in order; with HTTP/2, `:authority` is converted to `host`.
    public let headers: [(name: String, value: String)]
    /// The body, without its transfer coding.
    public let body: [UInt8]
    /// Whether the request was sent over HTTP/2.
    public let isHTTP2: Bool
    /// The number of the connection, starting at zero.
    public let connection: Int
    /// The number of earlier requests on the connection.
    public let number: Int
    let isKept: Bool
    let stream: Int32
    let wire: Connection

    /// The method and the target, such as "GET /path".
    public var line: String { "\(method) \(path)" }

    /// Returns the value of the first header with a name, ignoring case.
    public func header(_ name: String) -> String? {
      headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Responds to the request, unless it already has a response.
    public func respond(_ response: Response) { wire.perform { $0.respond(response, to: self) } }

    /// Sends bytes unchanged, for responses that no well-behaved server sends.
    ///
    /// They count as the response to the request. With HTTP/2, the bytes have to be frames.
    public func send(_ bytes: [UInt8]) { wire.perform { $0.send(bytes, for: self) } }

    /// Ends the connection after everything sent before.
    ///
    /// - Parameter ending: The kind of end; ``Response/Ending/keep`` has no effect.
    public func end(_ ending: Response.Ending = .close) { wire.perform { $0.end(ending, self) } }
  }
}
