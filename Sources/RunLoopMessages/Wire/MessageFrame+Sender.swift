// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension MessageFrame {
  /// Records the thread that sends a reply.
  mutating func noteSender(_ sender: Waker) {
    id = Self.time(of: sender.time.nanoseconds)
    processor = sender.processor >= 0 && sender.processor < Int32(UInt16.max) ? sender.processor : nil
  }

  /// Returns the thread that sent a reply, given the time at which the reply was received.
  func sender(receivedAt now: Tick) -> Waker {
    let time = Tick(nanoseconds: Self.nanoseconds(of: id, receivedAt: now.nanoseconds))
    return Waker(time: time, processor: processor ?? -1)
  }
}
