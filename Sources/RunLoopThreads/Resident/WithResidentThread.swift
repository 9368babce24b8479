// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Runs a body with a resident thread of its own, and ends the thread in every way in which the body can end.
///
/// ```swift
/// let answer = try await withResidentThread(name: "importer") { thread in
///   try await thread.run { try importAll() }
/// }
/// ```
///
/// When the body returns, what the thread has accepted still runs. If the body throws, or its task is cancelled, then
/// or later, work that waits is cancelled. This function returns when the thread has ended.
///
/// - Parameters:
///   - name: The thread's name.
///   - configuration: Stack, niceness, processors and timer slack.
///   - isolation: The actor on which the body runs: the caller's.
///   - report: Called with what the thread has done with its work, after its end.
///   - body: What uses the thread. A reference that it keeps is of a thread that has ended.
/// - Returns: What the body returns.
/// - Throws: ``ThreadError/cannotStart(thread:number:)``, or what the body throws.
public func withResidentThread<Result>(
  name: String? = nil, configuration: Thread.Configuration = .init(), isolation: isolated (any Actor)? = #isolation,
  report: (ResidentThread.StopReport) -> Void = { _ in }, _ body: (ResidentThread) async throws -> Result
) async throws -> Result {
  let thread = try ResidentThread(name: name, configuration: configuration)
  do {
    let result = try await body(thread)
    thread.stop(.afterPendingWork)
    // At once if the task has been cancelled before.
    report(
      await withTaskCancellationHandler {
        await thread.finished()
      } onCancel: {
        thread.stop(.immediately)
      })
    return result
  } catch {
    thread.stop(.immediately)
    report(await thread.finished())
    throw error
  }
}
