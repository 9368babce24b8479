// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

// For tasks: the socket is in a loop, and tasks wait for it on whatever thread they run.
extension Socket {
  /// Waits for bytes and takes them; returns nil at the end.
  ///
  /// Nothing is received between two calls, so a slow task makes the peer wait. Only one task can wait at a time. A
  /// task that is cancelled gets nil, and nothing is lost.
  ///
  /// - Parameter limit: How many bytes to take at most; never more than a mebibyte at a time.
  /// - Throws: ``SocketError``: that of the connection once, then ``SocketError/invalid``; ``SocketError/busy``;
  ///   ``SocketError/loop(_:)`` if the socket is in no loop, or the threads of all its loops have ended.
  public func receive(atMost limit: Int = 64 * 1024) async throws -> [UInt8]? {
    guard !lock.isParents else { throw SocketError.invalid }
    let limit = min(max(1, limit), Self.longestPiece)
    return try await wait(
      \.reader, cancelled: nil,
      unless: {
        state.hasEnded ? .success(nil) : state.phase == .closed ? .failure(SocketError.invalid) : nil
      },
      changed: {
        readerLimit = limit
        state.taker = reader.isTaken ? .waiter : handlerTaker
        updateInterest()
      })
  }

  /// The most bytes that a task takes at a time: room for them is made before they are there.
  private static let longestPiece = 1 << 20

  /// Sends bytes, and waits while ``Options/highWater`` bytes or more are queued.
  ///
  /// Several tasks may send: the bytes of each call stay together. A task that is cancelled no longer waits; bytes that
  /// were taken are sent, and if they were not, as others waited, the call throws `CancellationError`.
  ///
  /// - Throws: ``SocketError``: that of the connection, ``SocketError/closedForWriting``, ``SocketError/invalid``;
  ///   ``SocketError/loop(_:)`` as for receiving.
  public func send(_ bytes: [UInt8]) async throws {
    let isUnserved = lock.ifOwned(else: false) {
      registrations.all.isEmpty && (state.phase == .connecting || state.phase == .securing)
    }
    guard !isUnserved else { throw SocketError.loop(.itemIsInNoLoop) }
    while true {
      do throws(SocketError) {
        if try write(bytes) { return }
        break
      } catch {
        // Another task's bytes wait.
        guard case .bufferFull = error else { throw error }
      }
      try await awaitRoom()
      try Task.checkCancellation()
    }
    try await awaitRoom()
  }

  private func awaitRoom() async throws {
    try await wait(
      \.writer, cancelled: (),
      unless: {
        switch state.phase {
        case .closed: .failure(SocketError.invalid)
        case .closing(let error): .failure(error ?? .closedForWriting)
        case .connecting, .securing, .open:
          state.outputFailure.map { .failure($0) } ?? (state.owesRoom ? nil : .success(()))
        }
      }, changed: {})
  }

  /// The bytes that arrive, as a sequence of chunks, which receives only the bytes that are asked for.
  public var chunks: Arrivals<[UInt8]> { Arrivals { try await self.receive() } }

  /// The lines that arrive, as a sequence.
  ///
  /// - Parameter limit: The most bytes of a line.
  public func lines(upTo limit: Int = 1 << 20) -> ByteLines<Arrivals<[UInt8]>> {
    ByteLines(chunks: chunks, limit: limit)
  }

  /// The frames that arrive, as a sequence: each with its length before it, in four bytes, the most significant first.
  ///
  /// - Parameter limit: The most bytes of a frame, without its length.
  public func frames(upTo limit: Int = 1 << 24) -> ByteFrames<Arrivals<[UInt8]>> {
    ByteFrames(chunks: chunks, limit: limit)
  }

  /// Sends a text as UTF-8, as ``send(_:)-([UInt8])`` sends bytes.
  public func send(_ text: String) async throws { try await send(Array(text.utf8)) }

  /// Sends a line as UTF-8, with a line feed behind it.
  public func send(line: String) async throws { try await send(Array(line.utf8) + [UInt8(ascii: "\n")]) }

  /// Sends bytes as a frame: behind their length in four bytes, the most significant first.
  ///
  /// - Throws: A ``PieceTooLongError`` if the length takes more than four bytes, and the errors of sending.
  public func send(frame bytes: [UInt8]) async throws {
    guard let length = UInt32(exactly: bytes.count) else { throw PieceTooLongError(limit: Int(UInt32.max)) }
    try await send((0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) } + bytes)
  }
}

extension SocketError {
  init(_ rejection: WaitRejection) {
    switch rejection {
    case .busy: self = .busy
    case .noLoop: self = .loop(.itemIsInNoLoop)
    case .loopsHaveEnded: self = .loop(.loopHasEnded)
    }
  }
}
