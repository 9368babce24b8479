// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
package import Synchronization

extension Atomic where Value == UInt32 {
  /// Sleeps while this word equals `expected`, until `deadline` on the monotonic clock.
  ///
  /// It may return early for any reason, so the caller must check again. The corresponding system call is `futex` with
  /// `FUTEX_WAIT_BITSET`.
  package borrowing func futexWait(while expected: UInt32, until deadline: Tick = .never) {
    withUnsafePointer(to: self) { pointer in
      let word = UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt32.self)
      guard deadline != .never else {
        _ = try? SystemCall.futexWait.make { crl_futex_wait(word, expected, nil) }
        return
      }
      var time = timespec(nanoseconds: Swift.max(0, deadline.nanoseconds))
      _ = try? SystemCall.futexWait.make { crl_futex_wait(word, expected, &time) }
    }
  }

  /// Wakes at most `count` threads that sleep on this word.
  ///
  /// The corresponding system call is `futex` with `FUTEX_WAKE`.
  package borrowing func futexWake(_ count: Int32 = 1) {
    withUnsafePointer(to: self) { pointer in
      let word = UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt32.self)
      _ = try? SystemCall.futexWake.make { crl_futex_wake(word, count) }
    }
  }
}

extension timespec {
  package init(nanoseconds: Int64) {
    self.init(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
  }
}
