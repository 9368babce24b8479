// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents

/// The base class of byte streams, which implements their life cycle and their events on a loop.
///
/// Its subclasses are ``InputByteStream`` and ``OutputByteStream``. All members can be used from any thread. A loop
/// retains the streams that were added to it. The corresponding Foundation class is `Stream`; the Core Foundation
/// types are `CFReadStream` and `CFWriteStream`.
public class ByteStream: @unchecked Sendable, IdentityHashable {
  // Sendable: the lock guards all mutable state.

  /// The states of a stream.
  public enum Status: Hashable, Sendable {
    /// The stream has not been opened yet.
    case notOpen
    /// The system is connecting.
    case opening
    /// Bytes can be transferred.
    case open
    /// All bytes were read and the peer has stopped writing, or the peer no longer accepts bytes.
    case atEnd
    /// An error has occurred.
    case failed(SocketError)
    /// The stream is closed.
    case closed
  }

  /// An event that a handler is called with.
  public enum Event: Hashable, Sendable {
    /// The stream is open.
    case openCompleted
    /// There are bytes to read. This event is reported again after the next read if there are still bytes.
    case hasBytesAvailable
    /// There is room to write. This event is reported again after the next write if there is still room.
    case canAcceptBytes
    /// The end of the stream was reached. This event is reported once.
    case endEncountered
    /// An error has occurred. This event is reported once.
    case errorOccurred(SocketError)
  }

  /// A handler of events, called on the thread of a loop that the stream is in.
  public typealias Handler = @Sendable (ByteStream, Event) -> Void

  let lock = ProcessLock()
  let core: ByteStreamCore
  /// The event that an open stream waits for.
  let direction: RunLoop.DescriptorSource.Events

  // Guarded by the lock.

  var state = Status.notOpen
  var channel: ByteChannel?
  var body: Body?
  var registrations = Registrations()
  /// Whether the handler was notified of readiness, after which nothing is watched until it has read or written.
  var isTold = false
  /// Whether a block that checks for decrypted bytes has been posted to a loop.
  var hasPostedSession = false
  /// Whether the final state has not been reported yet.
  var owesNews = false
  /// Whether the opening has not been reported yet.
  var owesOpening = false

  struct Body {
    let handler: Handler
    /// Called when the stream is closed, or has another handler; the handler is not.
    let onEnd: (@Sendable () -> Void)?
    /// Does not use `map`, which would wrap the closure in a thunk that hides the user's function.
    init?(_ handler: Handler?, onEnd: (@Sendable () -> Void)?) {
      guard let handler else { return nil }
      (self.handler, self.onEnd) = (handler, onEnd)
    }
  }

  init(_ core: ByteStreamCore, _ direction: RunLoop.DescriptorSource.Events) {
    self.core = core
    self.direction = direction
  }

  /// Creates a pair of streams that connect to an address when the first of them is opened.
  ///
  /// The corresponding Core Foundation function is `CFStreamCreatePairWithSocketToHost`.
  public static func pair(connectingTo address: SocketAddress) -> (input: InputByteStream, output: OutputByteStream) {
    pair(ByteStreamCore(.address(address)))
  }

  /// Creates a pair of streams that own a connected socket, which is closed when both streams are closed.
  ///
  /// The descriptor is marked close-on-exec.
  ///
  /// - Throws: ``SocketError/descriptor(_:_:)`` if the descriptor is not a connected socket. The caller then still
  ///   owns it.
  ///
  /// The corresponding Core Foundation function is `CFStreamCreatePairWithSocket`.
  public static func pair(
    takingOver descriptor: Int32
  ) throws(SocketError) -> (input: InputByteStream, output: OutputByteStream) {
    let peer = try takeableSocket(descriptor)
    try keepFromPrograms(descriptor)
    return pair(ByteStreamCore(.connected(ByteChannel(OwnedDescriptor(descriptor), .socket)), at: peer?.unlessUnnamed))
  }

  /// Returns the peer of a connected socket to be taken over, or `nil` if the address family is not supported.
  static func takeableSocket(_ descriptor: Int32) throws(SocketError) -> SocketAddress? {
    do throws(SystemError) {
      return try SystemCall.connectedPeer(of: descriptor)
    } catch {
      throw .descriptor(descriptor, error)
    }
  }

  static func keepFromPrograms(_ descriptor: Int32) throws(SocketError) {
    do throws(SystemError) {
      try SystemCall.closeOnExec(descriptor)
    } catch {
      throw .descriptor(descriptor, error)
    }
  }

  static func pair(_ core: ByteStreamCore) -> (input: InputByteStream, output: OutputByteStream) {
    let (input, output) = (InputByteStream(core, .readable), OutputByteStream(core, .writable))
    core.input = input
    core.output = output
    return (input, output)
  }
}

extension ByteStream {
  /// The state of the stream.
  public var status: Status { lock.ifOwned(else: .closed) { state } }

  /// The closure that is called with the stream's events; defaults to `nil`.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set { setHandler(newValue) }
  }

  func setHandler(_ handler: Handler?, onEnd: (@Sendable () -> Void)? = nil) {
    guard lock.lockUnlessParents() else { return }
    let old = body
    if state != .closed { body = Body(handler, onEnd: onEnd) }
    lock.unlock()
    old?.onEnd?()
  }

  /// Opens the stream.
  ///
  /// An event reports the outcome. Opening it again has no effect. The corresponding Core Foundation functions are
  /// `CFReadStreamOpen` and `CFWriteStreamOpen`.
  public func open() {
    guard lock.lockUnlessParents() else { return }
    guard state == .notOpen else { return lock.unlock() }
    var source: RunLoop.DescriptorSource?
    do throws(SystemError) {
      let (opened, isConnected) = try core.open()
      channel = opened
      if isConnected, opened.kind != .socket {
        // Unlike a connected socket, a pipe that is read never becomes writable, so no event would report the opening.
        state = .open
        owesOpening = true
      } else {
        state = .opening
      }
      source = enterPlaces(opened)
      postNews()
      postHandshake()
    } catch {
      note(.failed(core.failure(error)))
    }
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  /// Closes the stream: it leaves all modes, and its handler is not called again.
  ///
  /// The connection is closed when both of its streams are closed. If the output stream is closed first, the peer sees
  /// the end of the stream. Calling it again has no effect. The corresponding Core Foundation functions are
  /// `CFReadStreamClose` and `CFWriteStreamClose`.
  public func close() {
    // A forked child must not shut down its parent's connection.
    guard lock.lockUnlessParents() else { return }
    guard state != .closed else { return lock.unlock() }
    state = .closed
    let (timer, stays) = (registrations.replaceTimer(nil), registrations.all)
    let source = registrations.removeAll()
    let (channel, body) = (channel, body)
    self.channel = nil
    self.body = nil
    lock.unlock()
    source?.invalidate()
    timer?.invalidate()
    if core.close(channel, isOutput: direction == .writable), let channel { core.linger(channel, in: stays) }
    body?.onEnd?()
  }
}

/// A stream that reads bytes from a connection, a pipe, a terminal or a file.
public final class InputByteStream: ByteStream, @unchecked Sendable {
  // Sendable: it has no state besides that of the base class.

  /// Reads the bytes that have arrived, without waiting.
  ///
  /// - Returns: The number of bytes read, 0 at the end of the stream, or `nil` if no bytes have arrived.
  /// - Throws: ``SocketError/invalid`` if the stream is not open, or the error of the stream.
  public func read(into bytes: UnsafeMutableRawBufferPointer) throws(SocketError) -> Int? {
    guard !bytes.isEmpty else { return 0 }
    return try transfer { channel throws(SocketError) in try core.receive(bytes, from: channel) }
  }
}

/// A stream that writes bytes to a connection, a pipe, a terminal or a file.
public final class OutputByteStream: ByteStream, @unchecked Sendable {
  // Sendable: it has no state besides that of the base class.

  /// Writes as many bytes as the system accepts, without waiting.
  ///
  /// - Returns: The number of bytes written, or `nil` if there is no room, in which case
  ///   ``ByteStream/Event/canAcceptBytes`` reports when there is.
  /// - Throws: ``SocketError/invalid`` if the stream is not open, or the error of the stream.
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SocketError) -> Int? {
    guard !bytes.isEmpty else { return 0 }
    return try transfer { channel throws(SocketError) in try core.send(bytes, to: channel) }
  }

  /// Writes as many bytes as the system accepts, as ``write(_:)-(UnsafeRawBufferPointer)`` does.
  public func write(_ bytes: [UInt8]) throws(SocketError) -> Int? {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(SocketError) in try write(bytes) }
    }
    return try result.get()
  }
}
