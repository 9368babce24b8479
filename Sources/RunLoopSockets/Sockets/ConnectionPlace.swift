// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The place of a connection among those of a listening socket; it is free again when this goes, after the descriptor
/// was closed.
final class ConnectionPlace: Sendable {
  private let listener: WeakListener
  private let inputEnd: InputEnd
  /// The connection's descriptor, which is open until this has left.
  private let descriptor: Int32

  init(_ listener: ListeningSocket, _ descriptor: Int32) {
    self.listener = WeakListener(listener)
    inputEnd = listener.inputEnd
    self.descriptor = descriptor
  }

  deinit {
    leave()
    listener.value?.connectionEnded()
  }

  /// Whether this end has ended the input of the listening socket's connections.
  var hasEndedInput: Bool { inputEnd.isEnded.load(ordering: .acquiring) }

  /// Whether the input of all connections of a listening socket was ended, which may outlive it.
  final class InputEnd: Sendable {
    let isEnded = Atomic<Bool>(false)
  }

  /// The descriptor is about to be closed; again: nothing.
  func leave() { listener.value?.descriptorEnds(descriptor, self) }

  private struct WeakListener: @unchecked Sendable {
    // Sendable: a weak reference that is never written again; reading one is atomic.
    weak var value: ListeningSocket?

    init(_ value: ListeningSocket) { self.value = value }
  }
}
