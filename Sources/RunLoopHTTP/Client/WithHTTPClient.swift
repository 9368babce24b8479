// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Runs a body with an HTTP client of its own, and ends the client in every way in which the body can end.
///
/// ```swift
/// let body = try await withHTTPClient { client in try await client.data(for: HTTP.Request(url)).0 }
/// ```
///
/// When the body returns, requests that have begun go on to their end. If the body throws, or its task is cancelled,
/// then or later, they end with ``HTTP/Error/Code/stopped``. This function returns when the client's connections are
/// closed and its thread has ended.
///
/// - Parameters:
///   - configuration: How the client behaves.
///   - loop: The loop that its connections live on, in the common modes; it has to run. With nil the client starts a
///     thread of its own.
///   - isolation: The actor on which the body runs: the caller's.
///   - report: Called with what has happened to the requests, at their end.
///   - body: What uses the client. A reference that it keeps is of a client that has ended.
/// - Returns: What the body returns.
/// - Throws: What the body throws.
public func withHTTPClient<Result>(
  _ configuration: HTTP.Configuration = .init(), on loop: RunLoop? = nil,
  isolation: isolated (any Actor)? = #isolation, report: (HTTP.StopReport) -> Void = { _ in },
  _ body: (HTTP.Client) async throws -> Result
) async rethrows -> Result {
  let client = HTTP.Client(configuration, on: loop)
  do {
    let result = try await body(client)
    client.stop(.afterPendingWork)
    // At once if the task has been cancelled before.
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
