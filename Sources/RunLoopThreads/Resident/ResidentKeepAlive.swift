// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The port that keeps the loop of a resident thread alive, and that receives no messages.
final class ResidentKeepAlive: Port, @unchecked Sendable, CarriedItem {
  // Sendable: the place is written once.

  /// Where the thread was made, because the port is added on the thread itself.
  let keepAlivePlace = AddedPlace.takeIfWatched()

  var keepAliveKind: KeepAliveKind { .resident }
  var keepAliveDetail: String { "waits for work until it is stopped" }
}
