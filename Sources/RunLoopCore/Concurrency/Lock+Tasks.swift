// SPDX-License-Identifier: Apache-2.0

extension Lock {
  /// Orders what a thread did before it held this lock and resumed a task before what the task does next.
  ///
  /// The language's runtime does that. The thread sanitizer does not see it where the resuming thread is none of the
  /// runtime's, and would report a race.
  @inline(__always)
  package borrowing func noteResumption() {
    lock()
    unlock()
  }
}
