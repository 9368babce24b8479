// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Runs work that waits for tasks on a thread that tasks do not need.
///
/// A test that blocks its own thread blocks one of the few on which all tasks run.
package func elsewhere<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
  await withCheckedContinuation { continuation in
    DispatchQueue.global().async { continuation.resume(returning: work()) }
  }
}
