// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

/// What the two streams of a pair share: the descriptor, and the connecting of it.
final class ByteStreamCore: @unchecked Sendable {
  // Sendable: guarded by the lock, which is taken after a stream's.

  enum Link {
    /// The first stream that opens begins to connect.
    case address(SocketAddress)
    case connecting(OwnedDescriptor)
    case connected(OwnedDescriptor)
    case failed(SystemError)
  }

  let lock = Lock()
  private(set) var link: Link
  private var openSides = 2
  /// What encrypts and decrypts, if the connection is or will be secured.
  let tls: TLSSession?
  /// Whether its handshake has begun.
  var hasBegun = false
  /// The streams: each is notified of what the other has done to the handshake.
  weak var input: ByteStream?
  weak var output: ByteStream?

  init(_ link: Link, _ tls: TLSSession? = nil) {
    self.link = link
    self.tls = tls
  }

  /// The descriptor, if there is one; begins to connect if need be.
  func open() throws(SystemError) -> (descriptor: OwnedDescriptor, isConnected: Bool) {
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
        link = .connecting(descriptor)
        return (descriptor, false)
      } catch {
        link = .failed(error)
        throw error
      }
    case .connecting(let descriptor): return (descriptor, false)
    case .connected(let descriptor): return (descriptor, true)
    case .failed(let error): throw error
    }
  }

  /// Sees whether the connection is made, now that the descriptor is ready.
  ///
  /// The kernel tells an error once; the second stream gets it from here.
  func finishConnecting() throws(SystemError) {
    lock.lock()
    defer { lock.unlock() }
    switch link {
    case .connecting(let descriptor):
      do throws(SystemError) {
        try descriptor.takeError(of: .connect)
        link = .connected(descriptor)
      } catch {
        link = .failed(error)
        throw error
      }
    case .failed(let error): throw error
    case .address, .connected: break
    }
  }

  /// One of the streams is closed: the other end sees it if the other stream goes on.
  ///
  /// - Returns: Whether bytes that were encrypted still wait to be sent.
  func close(_ descriptor: OwnedDescriptor, isOutput: Bool) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    openSides -= 1
    guard isOutput, case .connected = link else { return false }
    return !endWriting(descriptor)
  }

  /// Ends the writing side, if another stream goes on; false if bytes still wait to be sent.
  ///
  /// Under the lock.
  func endWriting(_ descriptor: OwnedDescriptor) -> Bool {
    guard sendEnd(descriptor) else { return false }
    // A connection that is lost cannot be shut down, and need not be.
    if openSides > 0 { try? descriptor.shutDown(Int32(SHUT_WR)) }
    return true
  }
}
