// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

// For tasks. The socket has to be in a loop; the tasks can run on any thread.
extension Socket {
  /// Waits for bytes and returns them, or returns `nil` at the end of the stream.
  ///
  /// Nothing is received between two calls, so a slow task makes the peer wait. Only one task can wait at a time.
  /// If the task is cancelled, this method returns `nil`, and no bytes are lost.
  ///
  /// - Parameter limit: The maximum number of bytes to return, at most 1 MiB. The default is 64 KiB.
  /// - Throws: A ``SocketError``: the error that ended the connection, also if no task was waiting then;
  ///   ``SocketError/invalid`` if the socket was invalidated; ``SocketError/busy``; ``SocketError/loop(_:)`` if the
  ///   socket is in no loop, or if the threads of all its loops have ended.
  public func receive(atMost limit: Int = 64 * 1024) async throws -> [UInt8]? {
    guard !lock.isParents else { throw SocketError.invalid }
    let limit = min(max(1, limit), Self.longestPiece)
    return try await wait(
      \.reader, cancelled: nil,
      unless: {
        state.hasEnded ? .success(nil) : state.phase == .closed ? .failure(state.endError ?? .invalid) : nil
      },
      changed: {
        readerLimit = limit
        state.taker = reader.isTaken ? .waiter : handlerTaker
        updateInterest()
      })
  }

  /// The maximum number of bytes that a task receives at a time, for which memory is allocated before they arrive.
  private static let longestPiece = 1 << 20

  /// Sends bytes, and waits while ``Options/highWater`` or more bytes are queued.
  ///
  /// Several tasks can send at the same time; the bytes of each call stay together. A task that is cancelled stops
  /// waiting. Bytes that were already queued are still sent. If they were not queued because other tasks were
  /// waiting, this method throws `CancellationError`.
  ///
  /// - Throws: A ``SocketError``: the error of the connection, ``SocketError/closedForWriting``,
  ///   ``SocketError/invalid``, or ``SocketError/loop(_:)`` as for receiving.
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
        // Wait until the bytes of other tasks have been sent.
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
        case .closed: .failure(state.endError ?? .invalid)
        case .closing(let error): .failure(error ?? .closedForWriting)
        case .connecting, .securing, .open:
          state.outputFailure.map { .failure($0) } ?? (state.owesRoom ? nil : .success(()))
        }
      }, changed: {})
  }

  /// The bytes that arrive, as an asynchronous sequence of chunks, which are received only when they are requested.
  public var chunks: Arrivals<[UInt8]> { Arrivals { try await self.receive() } }

  /// Returns the lines that arrive as an asynchronous sequence.
  ///
  /// - Parameter limit: The maximum length of a line in bytes, without its end. The default is 1 MiB.
  public func lines(upTo limit: Int = 1 << 20) -> ByteLines<Arrivals<[UInt8]>> {
    ByteLines(chunks: chunks, limit: limit)
  }

  /// Returns the frames that arrive, each preceded by its length as a four-byte big-endian number, as an asynchronous
  /// sequence.
  ///
  /// - Parameter limit: The maximum length of a frame in bytes, without its length field. The default is 16 MiB.
  public func frames(upTo limit: Int = 1 << 24) -> ByteFrames<Arrivals<[UInt8]>> {
    ByteFrames(chunks: chunks, limit: limit)
  }

  /// Sends a text as UTF-8, as ``send(_:)-([UInt8])`` sends bytes.
  public func send(_ text: String) async throws { try await send(Array(text.utf8)) }

  /// Sends a line as UTF-8, followed by a line feed.
  public func send(line: String) async throws { try await send(Array(line.utf8) + [UInt8(ascii: "\n")]) }

  /// Sends bytes as a frame, preceded by their length as a four-byte big-endian number.
  ///
  /// - Throws: A ``PieceTooLongError`` if the length does not fit in four bytes, and the errors of sending.
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
