// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Runs a closure with an HTTP client, and stops the client however the closure exits.
///
/// ```swift
/// let body = try await withHTTPClient { client in try await client.data(for: HTTP.Request(url)).0 }
/// ```
///
/// When the closure returns, pending requests run to completion. If it throws, or if the task is cancelled at any
/// time, pending requests end with ``HTTP/Error/Code/stopped``. This function returns once the client's connections
/// are closed and its thread has ended.
///
/// - Parameters:
///   - configuration: The client's configuration.
///   - loop: The loop that the connections run on, in the common modes. It has to be running. If it is nil, the
///     client starts a thread of its own.
///   - isolation: The actor on which the closure runs. Defaults to the caller's.
///   - report: Called with a summary of the requests after they have ended.
///   - body: The closure that uses the client. The client is stopped when the closure exits, even if it stores a
///     reference.
/// - Returns: The closure's result.
/// - Throws: The error that the closure throws.
public func withHTTPClient<Result>(
  _ configuration: HTTP.Configuration = .init(), on loop: RunLoop? = nil,
  isolation: isolated (any Actor)? = #isolation, report: (HTTP.StopReport) -> Void = { _ in },
  _ body: (HTTP.Client) async throws -> Result
) async rethrows -> Result {
  let client = HTTP.Client(configuration, on: loop)
  do {
    let result = try await body(client)
    client.stop(.afterPendingWork)
    // If the task is already cancelled, the handler stops the client immediately.
    report(
      await withTaskCancellationHandler {
        await client.finished()
      } onCancel: {
        client.stop(.immediately)
      })
    return result
  } catch {
    client.stop(.immediately)
    report(await client.finished())
    throw error
  }
}
