// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Runs a body with a listening socket, and ends the socket in every way in which the body can end.
///
/// ```swift
/// try await withListeningSocket(at: .loopback(port: 8080), on: loop) { listener in
///   for try await connection in listener.connections { Task { await serve(connection) } }
/// }
/// ```
///
/// When the body returns, connections that were accepted go on to their end, as with
/// ``ListeningSocket/drain(endsInput:)``. If the body throws, or its task is cancelled, then or later, they are cut.
/// This function returns when the socket is closed and the connections are over or cut.
///
/// - Parameters:
///   - address: Where the socket listens.
///   - tls: What secures the connections, made of a ``TLSServerConfiguration``; nil leaves them plain.
///   - options: The socket's options.
///   - loop: The loop that serves the socket; it has to run.
///   - mode: The mode that the socket is in.
///   - endsInput: Whether nothing more is received on the connections that are left when the body has returned.
///   - isolation: The actor on which the body runs: the caller's.
///   - report: Called at the end with how many connections were cut.
///   - body: What accepts connections. A reference that it keeps is of a socket that is closed.
/// - Returns: What the body returns.
/// - Throws: A ``SocketError``, a `RunLoopError`, or what the body throws.
public func withListeningSocket<Result>(
  at address: SocketAddress, tls: TLSContext? = nil, options: ListeningSocket.Options = .init(), on loop: RunLoop,
  forMode mode: RunLoop.Mode = .default, endsInput: Bool = false, isolation: isolated (any Actor)? = #isolation,
  report: (Int) -> Void = { _ in }, _ body: (ListeningSocket) async throws -> Result
) async throws -> Result {
  let listener =
    try tls.map { try ListeningSocket(at: address, tls: $0, options: options) }
    ?? ListeningSocket(at: address, options: options)
  do {
    try loop.add(listener, forMode: mode)
    let result = try await body(listener)
    report(await listener.drain(endsInput: endsInput))
    return result
  } catch {
    report(await listener.cut())
    throw error
  }
}

extension ListeningSocket {
  /// Closes the socket, and cuts the connections that it has accepted; returns how many there were.
  fileprivate func cut() async -> Int {
    let drain = Task { await self.drain() }
    drain.cancel()
    return await drain.value
  }
}
