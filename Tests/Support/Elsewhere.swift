// SPDX-License-Identifier: Apache-2.0

import class Foundation.Thread

/// Runs work that waits for tasks, on a new thread.
///
/// A test that blocks its own thread blocks one of the few on which all tasks run, and one that blocks a thread of
/// Dispatch delays other blocks: while enough of its threads are busy, Dispatch makes no more.
package func elsewhere<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: work()) }
  }
}
