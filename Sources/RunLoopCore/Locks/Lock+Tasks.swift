// SPDX-License-Identifier: Apache-2.0

extension Lock {
  /// Makes what a thread did before it held this lock and resumed a task happen before what the task does next.
  ///
  /// The language's runtime guarantees this order. The thread sanitizer does not see it if the resuming thread is not
  /// one of the runtime's, and would report a race.
  @inline(__always)
  package borrowing func noteResumption() {
    lock()
    unlock()
  }
}
