// SPDX-License-Identifier: Apache-2.0

/// What arrives at a socket, as a sequence for one task: bytes, connections or datagrams.
public struct Arrivals<Element: Sendable>: AsyncSequence, Sendable {
  private let receive: @Sendable () async throws -> Element?

  init(_ receive: @escaping @Sendable () async throws -> Element?) { self.receive = receive }

  /// Waits for each element.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let receive: @Sendable () async throws -> Element?

    /// Waits for the next element; returns nil at the end and when the task is cancelled.
    ///
    /// - Throws: The error of the socket.
    public mutating func next() async throws -> Element? { try await receive() }
  }

  /// Makes an iterator.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(receive: receive) }
}
