// SPDX-License-Identifier: Apache-2.0

extension HTTPTestServer {
  /// A request that a server has received, and its connection.
  ///
  /// All of its methods can be called from any thread; what they do is done by the server's loop, in their order. On a
  /// connection that is over they have no effect.
  public struct Request: Sendable {
    /// The method, such as "GET".
    public let method: String
    /// The target as it was sent, such as "/path?query".
    public let path: String
    /// The headers in their order; with HTTP/2, `:authority` is `host`.
    public let headers: [(name: String, value: String)]
    /// The body, without its coding of the transfer.
    public let body: [UInt8]
    /// Whether it came by HTTP/2.
    public let isHTTP2: Bool
    /// The number of its connection, from zero.
    public let connection: Int
    /// How many requests came on its connection before.
    public let number: Int
    let isKept: Bool
    let stream: Int32
    let wire: Connection

    /// The method and the path, such as "GET /path".
    public var line: String { "\(method) \(path)" }

    /// The value of the first header of a name, in upper or lower case.
    public func header(_ name: String) -> String? {
      headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Responds to the request, if that was not done before.
    public func respond(_ response: Response) { wire.perform { $0.respond(response, to: self) } }

    /// Sends bytes as they are, for responses that no honest server sends.
    ///
    /// The server considers the request answered. With HTTP/2 they have to be frames.
    public func send(_ bytes: [UInt8]) { wire.perform { $0.send(bytes, for: self) } }

    /// Ends the connection when what was sent before is on its way.
    ///
    /// - Parameter ending: How; ``Response/Ending/keep`` has no effect.
    public func end(_ ending: Response.Ending = .close) { wire.perform { $0.end(ending, self) } }
  }
}
