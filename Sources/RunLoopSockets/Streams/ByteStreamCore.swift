// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// What the two streams of a pair share: the channel, and the connecting of it.
final class ByteStreamCore: @unchecked Sendable {
  // Sendable: guarded by the lock, which is taken after a stream's.

  enum Link {
    /// The first stream that opens begins to connect.
    case address(SocketAddress)
    case connecting(ByteChannel)
    case connected(ByteChannel)
    case failed(SystemError)
    /// All streams are closed.
    case closed
  }

  let lock = Lock()
  /// The peer's address for errors; nil: there is none.
  let address: SocketAddress?
  private(set) var link: Link
  private(set) var openSides: Int
  /// What encrypts and decrypts, if the connection is or will be secured; the channel is a socket then.
  let tls: TLSSession?
  /// Why the output has failed.
  ///
  /// What was received before that is still read.
  private(set) var outputFailure: SystemError?
  /// Whether its handshake has begun.
  var hasBegun = false
  /// Ends what goes on after a stream was closed, if that takes too long.
  var lingering: RegisteredTimer?
  /// The streams: each is notified of what the other has done to the handshake.
  weak var input: ByteStream?
  weak var output: ByteStream?

  init(_ link: Link, _ tls: TLSSession? = nil, at address: SocketAddress? = nil, sides: Int = 2) {
    self.link = link
    self.address = if case .address(let address) = link { address } else { address }
    self.tls = tls
    openSides = sides
  }

  /// An error of a system call, with the peer's address.
  func failure(_ error: SystemError) -> SocketError { .system(error, address: address) }

  /// Records that the output has failed, and returns the first error: a reset is reported once, by whichever
  /// call comes first.
  ///
  /// Under the lock.
  @discardableResult
  func failOutput(_ error: SystemError) -> SystemError {
    let first = outputFailure ?? error
    outputFailure = first
    tls?.dropOutput()
    return first
  }

  /// The channel, if there is one; begins to connect if need be.
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

  /// Sees whether the connection is made, now that the descriptor is ready.
  ///
  /// The kernel tells an error once; the second stream gets it from here.
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
        // The connection was made, and the peer has sent something and reset it before anybody looked.
        failOutput(SystemError(call: SystemCall.streamRead.rawValue, number: error.number))
      }
      link = .connected(channel)
    case .failed(let error): throw error
    case .address, .connected, .closed: break
    }
  }

  /// One of the streams is closed: the other end sees it if the other stream goes on, and all is closed with the last.
  ///
  /// - Parameters:
  ///   - channel: What the stream has, if it was opened.
  ///   - isOutput: Whether it was the one that writes.
  /// - Returns: Whether a secured connection is yet to be ended in an orderly way.
  func close(_ channel: ByteChannel?, isOutput: Bool) -> Bool {
    lock.lock()
    openSides -= 1
    let before = link
    var isWaiting = false
    if isOutput, let channel, case .connected = link {
      isWaiting = !sendEnd(channel.descriptor)
      // A connection that is lost cannot be shut down, and need not be.
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
