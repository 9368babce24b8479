// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The state shared by the two streams of a pair: the channel and its connection.
final class ByteStreamCore: @unchecked Sendable {
  // Sendable: guarded by the lock, which is taken after a stream's lock.

  enum Link {
    /// The first stream that opens starts connecting.
    case address(SocketAddress)
    case connecting(ByteChannel)
    case connected(ByteChannel)
    case failed(SystemError)
    case closed
  }

  let lock = Lock()
  /// The peer's address for errors, or `nil` if it has none.
  let address: SocketAddress?
  private(set) var link: Link
  private(set) var openSides: Int
  /// The TLS session, if the connection is or will be secured, in which case the channel is a socket.
  let tls: TLSSession?
  /// The error of the output; bytes received before it can still be read.
  private(set) var outputFailure: SystemError?
  var hasBegun = false
  /// Limits the time for ending the connection after both streams were closed.
  var lingering: RegisteredTimer?
  /// The streams, each of which is notified when the other has advanced the handshake.
  weak var input: ByteStream?
  weak var output: ByteStream?

  init(_ link: Link, _ tls: TLSSession? = nil, at address: SocketAddress? = nil, sides: Int = 2) {
    self.link = link
    self.address = if case .address(let address) = link { address } else { address }
    self.tls = tls
    openSides = sides
  }

  /// Wraps an error of a system call together with the peer's address.
  func failure(_ error: SystemError) -> SocketError { .system(error, address: address) }

  /// Records that the output has failed, and returns the first error, because the system reports a reset only once;
  /// requires the lock.
  @discardableResult
  func failOutput(_ error: SystemError) -> SystemError {
    let first = outputFailure ?? error
    outputFailure = first
    tls?.dropOutput()
    return first
  }

  /// Returns the channel, and starts connecting if necessary.
  func open() throws(SystemError) -> (channel: ByteChannel, isConnected: Bool) {
    lock.lock()
    defer { lock.unlock() }
    switch link {
    case .address(let address):
      do throws(SystemError) {
        let descriptor = try OwnedDescriptor.makeStream(address)
        try descriptor.setNoDelay(address.family)
        guard try descriptor.connect(address) else {
          throw SystemError(call: SystemCall.connect.rawValue, number: EAGAIN)
        }
        let channel = ByteChannel(descriptor, .socket)
        link = .connecting(channel)
        return (channel, false)
      } catch {
        link = .failed(error)
        throw error
      }
    case .connecting(let channel): return (channel, false)
    case .connected(let channel): return (channel, true)
    case .failed(let error): throw error
    case .closed: throw SystemError(call: SystemCall.connect.rawValue, number: EBADF)
    }
  }

  /// Checks whether the connection was established, and keeps an error, which the kernel reports only once, for the
  /// second stream.
  func finishConnecting() throws(SystemError) {
    lock.lock()
    defer { lock.unlock() }
    switch link {
    case .connecting(let channel):
      let descriptor = channel.descriptor
      do throws(SystemError) {
        try descriptor.takeError(of: .connect)
        if descriptor.isConnectedToItself(address) { throw descriptor.rejectItself() }
      } catch {
        guard (try? descriptor.hasBytes()) == true else {
          link = .failed(error)
          throw error
        }
        // The connection was established, and the peer sent bytes and reset it before this call.
        failOutput(SystemError(call: SystemCall.streamRead.rawValue, number: error.number))
      }
      link = .connected(channel)
    case .failed(let error): throw error
    case .address, .connected, .closed: break
    }
  }

  /// Closes one of the streams.
  ///
  /// The peer sees the end of the output, and the last stream closes the connection.
  ///
  /// - Parameters:
  ///   - channel: The channel of the stream, if it was opened.
  ///   - isOutput: Whether the stream is the output stream.
  /// - Returns: Whether the TLS session must still be closed properly.
  func close(_ channel: ByteChannel?, isOutput: Bool) -> Bool {
    lock.lock()
    openSides -= 1
    let before = link
    var isWaiting = false
    if isOutput, let channel, case .connected = link {
      isWaiting = !sendEnd(channel.descriptor)
      // Shutting down a lost connection fails, which is harmless.
      if !isWaiting, openSides > 0 { try? channel.descriptor.shutDown(Int32(SHUT_WR)) }
    }
    if openSides == 0 {
      if case .connected = link, channel != nil, lingering == nil, awaitsPeer { isWaiting = true }
      link = .closed
    }
    lock.unlock()
    withExtendedLifetime(before) {}
    return isWaiting
  }
}
