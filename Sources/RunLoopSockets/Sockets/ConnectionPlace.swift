// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A connection's place among those of a listening socket, freed on deinitialization after the descriptor was closed.
final class ConnectionPlace: Sendable {
  private let listener: WeakListener
  private let inputEnd: InputEnd
  /// The connection's descriptor, which is open until ``leave()`` is called.
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

  /// Whether a drain of the listening socket has ended the input of its connections.
  var hasEndedInput: Bool { inputEnd.isEnded.load(ordering: .acquiring) }

  /// Records whether the input of a listening socket's connections was ended; can outlive the socket.
  final class InputEnd: Sendable {
    let isEnded = Atomic<Bool>(false)
  }

  /// Must be called before the descriptor is closed; calling it again has no effect.
  func leave() { listener.value?.descriptorEnds(descriptor, self) }

  private struct WeakListener: @unchecked Sendable {
    // Sendable: the weak reference is never written after initialization, and reading it is atomic.
    weak var value: ListeningSocket?

    init(_ value: ListeningSocket) { self.value = value }
  }
}
