// SPDX-License-Identifier: Apache-2.0

extension Lock {
  /// Establishes that what a thread did before it held this lock and resumed a task happens before the task continues.
  ///
  /// The Swift runtime guarantees this order, but the thread sanitizer does not see it if the resuming thread is not
  /// one of the runtime's, and would report a race.
  @inline(__always)
  package borrowing func noteResumption() {
    lock()
    unlock()
  }
}
