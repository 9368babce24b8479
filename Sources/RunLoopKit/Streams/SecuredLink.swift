// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopSockets

/// The secured connection of two streams: a socket on the library's loop, and the data that it has received.
///
/// The lock of the streams' connection guards it.
final class SecuredLink {
  private var socket: Socket?
  private var received = StreamBytes()
  private var isPaused = false
  private var isOpen = false
  private var hasSpace = true
  private var hasEnded = false
  private var failure: (any Error)?

  /// The number of unread bytes at which the peer must wait, and the maximum size of a write.
  private static let limit = 64 * 1024
  /// How long a connection may stay open after both streams are released, to send pending data and close properly.
  private static let lastWords: Duration = .seconds(30)

  /// Takes ownership of a descriptor, which is closed if this throws.
  init(
    _ descriptor: Int32, _ context: TLSContext, serverName: String, on loop: RunLoop, for connection: StreamConnection
  ) throws {
    var options = Socket.Options()
    options.tls = context
    options.serverName = serverName
    let socket: Socket
    do {
      socket = try Socket(takingOver: descriptor, options: options) { [weak connection] _, event in
        guard let connection else { return }
        switch event {
        case .connected: connection.changeLink { $0.isOpen = true }
        case .received(let bytes): bytes.withUnsafeBytes { bytes in connection.changeLink { $0.put(received: bytes) } }
        case .writable: connection.changeLink { $0.hasSpace = true }
        case .ended: connection.changeLink { $0.hasEnded = true }
        case .closed(let error): connection.changeLink { $0.closed(error) }
        case .readable: break
        }
      }
    } catch {
      close(descriptor)
      throw error
    }
    self.socket = socket
    do { try loop.add(socket, forMode: .common) } catch {
      socket.invalidate()
      throw error
    }
  }

  private func put(received bytes: UnsafeRawBufferPointer) {
    received.put(bytes)
    guard received.count >= Self.limit else { return }
    isPaused = true
    socket?.pauseReading()
  }

  private func closed(_ error: SocketError?) {
    // Both directions were closed properly.
    if error == nil { hasEnded = true }
    failure = error ?? SocketError.closedForWriting
    socket = nil
  }

  func sight(_ side: StreamSide) -> StreamSight {
    if side == .reading {
      if received.count > 0 { return .open }
      if hasEnded { return .atEnd }
    }
    if let failure { return .failed(failure) }
    return isOpen ? .open : .opening
  }

  func isReady(_ side: StreamSide) -> Bool {
    side == .reading ? received.count > 0 : isOpen && hasSpace && failure == nil
  }

  /// Reads received bytes, and returns 0 at the end or nil if there are none yet.
  func take(_ buffer: UnsafeMutablePointer<UInt8>, _ limit: Int) throws -> Int? {
    guard received.count > 0 else {
      if hasEnded { return 0 }
      if let failure { throw failure }
      return nil
    }
    let taken = received.take(buffer, limit)
    if isPaused, received.count <= Self.limit / 2 {
      isPaused = false
      socket?.resumeReading()
    }
    return taken
  }

  /// Sends bytes, which are queued until the connection is secured, or returns nil if there is no space.
  func put(_ bytes: UnsafeRawBufferPointer) throws -> Int? {
    if let failure { throw failure }
    guard hasSpace, let socket else { return nil }
    let taken = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.limit))
    do {
      hasSpace = try socket.write(taken)
      return taken.count
    } catch .invalid {
      // The loop will report the reason.
      hasSpace = false
      return nil
    } catch { throw error }
  }

  func endWriting() { socket?.shutDown(.write) }

  /// Called when both streams have been released.
  func end() {
    guard let socket else { return }
    socket.setDeadline(after: Self.lastWords)
    socket.resumeReading()
    socket.shutDown(.both)
  }
}
