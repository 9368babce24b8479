// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Looks a host up and connects to the first of its addresses that answers (RFC 8305, "happy eyeballs").
  ///
  /// The addresses of IPv4 and IPv6 take turns, each family in the order that the system prefers. The next address is
  /// tried when one fails, or has not answered within a delay; attempts that were begun go on meanwhile. When one is
  /// connected, the others are closed. At most 32 addresses are tried. With ``Options/tls``, an address has answered
  /// when the connection is secured, and the server has to have the host's name unless ``Options/serverName`` says
  /// otherwise. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - host: A name, or a numeric host.
  ///   - port: The port.
  ///   - family: Which addresses to look for; nil means those of IPv4 and IPv6.
  ///   - options: How the socket behaves; `connectTimeout` counts for each address.
  ///   - attemptDelay: How long to wait for an address before the next is tried too, at least 10 milliseconds.
  ///   - timeout: How long the whole attempt may take, including the lookup; nil means as long as the system tries. It
  ///     is counted by the loop, as the delay is.
  ///   - loop: The loop that connects and calls the block, never before this returns.
  ///   - modes: The modes in which it does so.
  ///   - body: Called once, unless the attempt is cancelled or the loop's thread ends before: with a socket that is
  ///     connected, has no handler, and is in no loop, or with the reason of each address.
  /// - Returns: The connection that is being made, to cancel it.
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

  /// Looks a host up and connects to the first of its addresses that answers.
  ///
  /// This is the method with a block, for tasks. A task that is cancelled gets ``HostConnectionError/cancelled(host:)``
  /// at once, and sockets that were connecting are closed.
  ///
  /// - Parameters:
  ///   - host: A name, or a numeric host.
  ///   - port: The port.
  ///   - family: Which addresses to look for; nil means those of IPv4 and IPv6.
  ///   - options: How the socket behaves; `connectTimeout` counts for each address.
  ///   - attemptDelay: How long to wait for an address before the next is tried too, at least 10 milliseconds.
  ///   - timeout: How long the whole attempt may take, including the lookup; nil means as long as the system tries.
  ///   - loop: A loop that runs, which connects.
  ///   - mode: The mode that the loop runs in.
  /// - Returns: A socket that is connected and in no loop.
  /// - Throws: ``HostConnectionError``.
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
    // The error says it; a lookup for the loop would also report the block that the loop rejects.
    guard !request.loop.takesNoItems else { throw HostConnectionError.loopHasEnded(host: host) }
    let answer = AwaitedAnswer<HostConnector.Answer>()
    // The connector alone holds the block: released uncalled, it is the end of the loop.
    let connection = HostConnector.start(
      request, system: system, LastAnswer.body(answer, last: .failure(.loopHasEnded(host: host))))
    return try await answer.value {
      answer.give(.failure(.cancelled(host: host)))
      connection.cancel()
    }.get()
  }
}

/// Gives an answer when it is released, if there is none.
private final class LastAnswer<Value: Sendable>: Sendable {
  let answer: AwaitedAnswer<Value>
  private let last: Value

  init(_ answer: AwaitedAnswer<Value>, _ last: Value) {
    self.answer = answer
    self.last = last
  }

  deinit { answer.give(last) }

  /// Returns a block that gives an answer, and holds nothing else that does.
  static func body(_ answer: AwaitedAnswer<Value>, last: Value) -> @Sendable (Value) -> Void {
    let end = LastAnswer(answer, last)
    return { end.answer.give($0) }
  }
}
