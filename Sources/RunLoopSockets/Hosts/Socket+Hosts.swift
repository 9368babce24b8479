// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Resolves a host and connects to the first of its addresses that responds (RFC 8305, "happy eyeballs").
  ///
  /// The attempts alternate between IPv4 and IPv6 addresses, each in the system's order of preference. The next
  /// address is tried when an attempt fails or has not succeeded within a delay; earlier attempts continue in the
  /// meantime. When one attempt succeeds, the others are closed. At most 32 addresses are tried. With ``Options/tls``,
  /// an attempt succeeds when the connection is secured, and the server's certificate has to be valid for the host's
  /// name unless ``Options/serverName`` is set. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - host: A host name or a numeric address.
  ///   - port: The port.
  ///   - family: The address family to look for. Defaults to `nil`, which means IPv4 and IPv6.
  ///   - options: The configuration of the socket. Its `connectTimeout` applies to each address.
  ///   - attemptDelay: The time to wait before the next address is tried too, at least 10 milliseconds; 250
  ///     milliseconds by default.
  ///   - timeout: The time limit for the whole operation, including the lookup. Defaults to `nil`, which leaves the
  ///     limit to the system. The loop measures this time and the delay.
  ///   - loop: The loop that connects and calls the block, never before this method returns.
  ///   - modes: The modes of the loop to use.
  ///   - body: Called once, unless the connection is cancelled or the loop's thread ends first. On success it gets a
  ///     connected socket that has no handler and is in no loop.
  /// - Returns: The connection in progress, which can be cancelled.
  @discardableResult
  public static func connect(
    toHost host: String, port: UInt16, family: SocketAddress.Family? = nil, options: Options = Options(),
    attemptDelay: Duration = .milliseconds(250), timeout: Duration? = nil, on loop: RunLoop,
    inModes modes: [RunLoop.Mode] = [.default],
    _ body: @escaping @Sendable (Result<Socket, HostConnectionError>) -> Void
  ) -> HostConnection {
    let query = HostResolver.Query(host: host, port: port, family: family)
    let request = HostConnector.Request(
      query: query, options: options, attemptDelay: attemptDelay, timeout: timeout, loop: loop, modes: modes)
    return HostConnector.start(request, body)
  }

  /// Resolves a host and connects to the first of its addresses that responds, as the method with a block does.
  ///
  /// If the task is cancelled, this throws ``HostConnectionError/cancelled(host:)`` at once, and connecting sockets
  /// are closed.
  ///
  /// - Parameters:
  ///   - host: A host name or a numeric address.
  ///   - port: The port.
  ///   - family: The address family to look for. Defaults to `nil`, which means IPv4 and IPv6.
  ///   - options: The configuration of the socket. Its `connectTimeout` applies to each address.
  ///   - attemptDelay: The time to wait before the next address is tried too, at least 10 milliseconds; 250
  ///     milliseconds by default.
  ///   - timeout: The time limit for the whole operation, including the lookup. Defaults to `nil`, which leaves the
  ///     limit to the system.
  ///   - loop: A running loop, which connects.
  ///   - mode: A mode that the loop runs in.
  /// - Returns: A connected socket that is in no loop.
  /// - Throws: A ``HostConnectionError``.
  public static func connect(
    toHost host: String, port: UInt16, family: SocketAddress.Family? = nil, options: Options = Options(),
    attemptDelay: Duration = .milliseconds(250), timeout: Duration? = nil, on loop: RunLoop,
    forMode mode: RunLoop.Mode = .common
  ) async throws -> Socket {
    let query = HostResolver.Query(host: host, port: port, family: family)
    let request = HostConnector.Request(
      query: query, options: options, attemptDelay: attemptDelay, timeout: timeout, loop: loop, modes: [mode])
    return try await connect(request, system: HostConnector.System())
  }

  static func connect(_ request: HostConnector.Request, system: HostConnector.System) async throws -> Socket {
    let host = request.query.host
    // Otherwise the lookup would also report on standard error that the loop rejected its block.
    guard !request.loop.takesNoItems else { throw HostConnectionError.loopHasEnded(host: host) }
    let answer = AwaitedAnswer<HostConnector.Answer>()
    // Only the connector retains the block, so if it is released without being called, the loop has ended.
    let connection = HostConnector.start(
      request, system: system, LastAnswer.body(answer, last: .failure(.loopHasEnded(host: host))))
    return try await answer.value {
      answer.give(.failure(.cancelled(host: host)))
      connection.cancel()
    }.get()
  }
}

/// Resumes with a final result on deinitialization, unless there is already a result.
private final class LastAnswer<Value: Sendable>: Sendable {
  let answer: AwaitedAnswer<Value>
  private let last: Value

  init(_ answer: AwaitedAnswer<Value>, _ last: Value) {
    self.answer = answer
    self.last = last
  }

  deinit { answer.give(last) }

  /// Returns a block that passes on a result and is the only owner of the final one.
  static func body(_ answer: AwaitedAnswer<Value>, last: Value) -> @Sendable (Value) -> Void {
    let end = LastAnswer(answer, last)
    return { end.answer.give($0) }
  }
}
