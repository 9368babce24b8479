// SPDX-License-Identifier: Apache-2.0

/// An asynchronous sequence, for one task at a time, of the bytes, connections or datagrams that arrive at a socket.
public struct Arrivals<Element: Sendable>: AsyncSequence, Sendable {
  private let receive: @Sendable () async throws -> Element?

  init(_ receive: @escaping @Sendable () async throws -> Element?) { self.receive = receive }

  /// An iterator that waits for each element.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let receive: @Sendable () async throws -> Element?

    /// Waits for the next element, or returns `nil` at the end or if the task is cancelled.
    ///
    /// - Throws: The error of the socket.
    public mutating func next() async throws -> Element? { try await receive() }
  }

  /// Creates an iterator.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(receive: receive) }
}
