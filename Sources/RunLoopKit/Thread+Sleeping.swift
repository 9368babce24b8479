// SPDX-License-Identifier: Apache-2.0

// Two C modules define `timespec`, and the compiler may use either.
import CoreFoundation
public import Foundation
import RunLoopLibC
public import RunLoopThreads

extension RunLoopThreads.Thread {
  /// Makes the calling thread sleep until a wall-clock date.
  ///
  /// If the clock is changed meanwhile, the sleep follows its new time. If the date has passed or is not a number,
  /// this returns immediately. The thread's loop does not run meanwhile. The corresponding Foundation method is
  /// `sleep(until:)`.
  public class func sleep(until date: Date) {
    let time = date.timeIntervalSince1970
    guard time > 0 else { return }
    var wake = timespec(tv_sec: Int.max, tv_nsec: 0)
    // Dates beyond 2^53 s have no fraction, and the kernel treats them as its maximum.
    if time < 0x1p53 {
      let nanoseconds = Int((time.truncatingRemainder(dividingBy: 1) * 1e9).rounded(.up))
      wake = timespec(tv_sec: Int(time) + nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
    }
    while clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &wake, nil) == EINTR {}
  }
}
