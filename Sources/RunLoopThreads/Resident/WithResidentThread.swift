// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Runs a body with a resident thread of its own, and ends the thread however the body ends.
///
/// ```swift
/// let answer = try await withResidentThread(name: "importer") { thread in
///   try await thread.run { try importAll() }
/// }
/// ```
///
/// When the body returns, the work that the thread has accepted still runs.
///
/// If the body throws, or if the task is cancelled at any time, pending work is cancelled. This function returns when
/// the thread has ended.
///
/// - Parameters:
///   - name: The thread's name. The default is `nil`.
///   - configuration: The stack size, niceness, processors and timer slack.
///   - isolation: The actor on which the body runs, by default the caller's.
///   - report: Called with the counts of the thread's work, after it has ended.
///   - body: The code that uses the thread. A reference that outlives the body refers to an ended thread.
/// - Returns: The result of the body.
/// - Throws: ``ThreadError/cannotStart(thread:number:)``, or the error of the body.
public func withResidentThread<Result>(
  name: String? = nil, configuration: Thread.Configuration = .init(), isolation: isolated (any Actor)? = #isolation,
  report: (ResidentThread.StopReport) -> Void = { _ in }, _ body: (ResidentThread) async throws -> Result
) async throws -> Result {
  let thread = try ResidentThread(name: name, configuration: configuration)
  do {
    let result = try await body(thread)
    thread.stop(.afterPendingWork)
    // If the task was already cancelled, the handler runs immediately.
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
