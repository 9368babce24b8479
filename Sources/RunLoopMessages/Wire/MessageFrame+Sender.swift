// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension MessageFrame {
  /// Notes the thread that sends an answer.
  mutating func noteSender(_ sender: Waker) {
    id = Self.time(of: sender.time.nanoseconds)
    processor = sender.processor >= 0 && sender.processor < Int32(UInt16.max) ? sender.processor : nil
  }

  /// The thread that sent an answer, which has been received now.
  func sender(receivedAt now: Tick) -> Waker {
    let time = Tick(nanoseconds: Self.nanoseconds(of: id, receivedAt: now.nanoseconds))
    return Waker(time: time, processor: processor ?? -1)
  }
}
