// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Calls a closure with a listening socket, and closes the socket when the closure returns or throws.
///
/// ```swift
/// try await withListeningSocket(at: .loopback(port: 8080), on: loop) { listener in
///   for try await connection in listener.connections { Task { await serve(connection) } }
/// }
/// ```
///
/// When the closure returns, accepted connections continue until they end, as with
/// ``ListeningSocket/drain(endsInput:)``. If the closure throws, or if its task is cancelled at any time, they are
/// cut. This function returns when the socket is closed and all connections have ended or were cut.
///
/// - Parameters:
///   - address: The address to listen at.
///   - tls: The context that secures the connections, created from a ``TLSServerConfiguration``. Defaults to `nil`,
///     which means no TLS.
///   - options: The socket's options.
///   - loop: The loop that serves the socket. It has to be running.
///   - mode: The mode that the socket is added to.
///   - endsInput: Whether to stop receiving on the remaining connections when the closure has returned.
///   - isolation: The actor on which the closure runs; the caller's by default.
///   - report: Called at the end with the number of connections that were cut.
///   - body: The closure that accepts connections. The socket is closed after the closure returns.
/// - Returns: The closure's result.
/// - Throws: A ``SocketError``, a `RunLoopError`, or the error that the closure throws.
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
  /// Closes the socket and cuts the connections that it has accepted, and returns the number of connections that were
  /// cut.
  fileprivate func cut() async -> Int {
    let drain = Task { await self.drain() }
    drain.cancel()
    return await drain.value
  }
}
