// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension MessageFrame {
  /// Returns the thread that sent a reply, given the time at which the reply was received.
  func sender(receivedAt now: Tick) -> Waker {
    Waker(time: Tick(nanoseconds: Self.nanoseconds(of: id, receivedAt: now.nanoseconds)), processor: -1)
  }
}
