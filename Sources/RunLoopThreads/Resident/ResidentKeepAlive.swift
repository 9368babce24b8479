// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A port that keeps the loop of a resident thread running; it never receives a message.
final class ResidentKeepAlive: Port, @unchecked Sendable, CarriedItem {
  // Sendable: the place is constant, and the superclass guards its own variables.

  /// Where the resident thread was created; the port itself is added later, on the thread.
  let keepAlivePlace = AddedPlace.takeIfWatched()

  var keepAliveKind: KeepAliveKind { .resident }
  var keepAliveDetail: String { "waits for work until it is stopped" }
}
