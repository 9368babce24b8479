// SPDX-License-Identifier: Apache-2.0

/// The place of a connection among those of a listening socket; it is free again when this goes, after the descriptor
/// was closed.
final class ConnectionPlace: Sendable {
  private let listener: WeakListener
  /// The connection's descriptor, which is open until this has left.
  private let descriptor: Int32

  init(_ listener: ListeningSocket, _ descriptor: Int32) {
    self.listener = WeakListener(listener)
    self.descriptor = descriptor
  }

  deinit {
    leave()
    listener.value?.connectionEnded()
  }

  /// The descriptor is about to be closed; again: nothing.
  func leave() { listener.value?.descriptorEnds(descriptor, self) }

  private struct WeakListener: @unchecked Sendable {
    // Sendable: a weak reference that is never written again; reading one is atomic.
    weak var value: ListeningSocket?

    init(_ value: ListeningSocket) { self.value = value }
  }
}
