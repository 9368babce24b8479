// SPDX-License-Identifier: Apache-2.0

/// The place of a connection among those that a listening socket may have; it is free again when this goes.
final class ConnectionPlace: Sendable {
  private let listener: WeakListener

  init(_ listener: ListeningSocket) { self.listener = WeakListener(listener) }

  deinit { listener.value?.connectionEnded() }

  private struct WeakListener: @unchecked Sendable {
    // Sendable: a weak reference that is never written again; reading one is atomic.
    weak var value: ListeningSocket?

    init(_ value: ListeningSocket) { self.value = value }
  }
}
