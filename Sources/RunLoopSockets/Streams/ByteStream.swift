// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// The common part of the two kinds of streams: a life from opening to closing, and events on a loop.
///
/// ``InputByteStream`` and ``OutputByteStream`` are its subclasses. All members can be used from any thread. A loop
/// holds the streams that are in it. The corresponding Foundation class is `Stream`, the Core Foundation types are
/// `CFReadStream` and `CFWriteStream`.
public class ByteStream: @unchecked Sendable, IdentityHashable {
  // Sendable: all that changes is guarded by the lock.

  /// The states of a stream's life.
  public enum Status: Hashable, Sendable {
    /// The stream has not been opened yet.
    case notOpen
    /// The system is connecting.
    case opening
    /// Bytes can pass.
    case open
    /// The other end has stopped writing and everything was read, or it no longer takes bytes.
    case atEnd
    /// An error has happened.
    case failed(SocketError)
    /// The stream is closed.
    case closed
  }

  /// An event that a handler is called with.
  public enum Event: Hashable, Sendable {
    /// The stream is open.
    case openCompleted
    /// There is something to read; this is reported again after the next read, if there is something then.
    case hasBytesAvailable
    /// There is room; this is reported again after the next write, if there is room then.
    case canAcceptBytes
    /// The end was reached; reported once.
    case endEncountered
    /// An error has happened; reported once.
    case errorOccurred(SocketError)
  }

  /// A handler of events, called on the thread of a loop that the stream is in.
  public typealias Handler = @Sendable (ByteStream, Event) -> Void

  let lock = ProcessLock()
  let core: ByteStreamCore
  /// What a stream that is open waits for.
  let direction: RunLoop.DescriptorSource.Events

  // Guarded by the lock.

  var state = Status.notOpen
  var channel: ByteChannel?
  var body: Body?
  var registrations = Registrations()
  /// Told that there is something to do; nothing is watched after that call-out until it is done.
  var isTold = false
  /// Whether a loop will look for what has been decrypted.
  var hasPostedSession = false
  /// Whether the last state is yet to be reported.
  var owesNews = false
  /// Whether the opening is.
  var owesOpening = false

  struct Body {
    let handler: Handler
    /// Called when the stream is closed, unlike the handler.
    let onClose: (@Sendable () -> Void)?
  }

  init(_ core: ByteStreamCore, _ direction: RunLoop.DescriptorSource.Events) {
    self.core = core
    self.direction = direction
  }

  /// Makes the two streams of a connection that is made when the first of them is opened.
  ///
  /// The corresponding Core Foundation function is `CFStreamCreatePairWithSocketToHost`.
  public static func pair(connectingTo address: SocketAddress) -> (input: InputByteStream, output: OutputByteStream) {
    pair(ByteStreamCore(.address(address)))
  }

  /// Makes the two streams of a connected socket, which they close when both are closed, and which is closed on exec
  /// from now on.
  ///
  /// - Throws: ``SocketError/descriptor(_:_:)`` if the descriptor is not a connected socket; it then is the caller's.
  ///
  /// The corresponding Core Foundation function is `CFStreamCreatePairWithSocket`.
  public static func pair(
    takingOver descriptor: Int32
  ) throws(SocketError) -> (input: InputByteStream, output: OutputByteStream) {
    let peer = try takeableSocket(descriptor)
    try keepFromPrograms(descriptor)
    return pair(ByteStreamCore(.connected(ByteChannel(OwnedDescriptor(descriptor), .socket)), at: peer?.unlessUnnamed))
  }

  /// The peer of a connected socket that is to be taken over; nil for a family that is none of ours.
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
  /// The state of the stream's life.
  public var status: Status { lock.ifOwned(else: .closed) { state } }

  /// The closure that is called with the stream's events.
  public var handler: Handler? {
    get { lock.ifOwned(else: nil) { body?.handler } }
    set { setHandler(newValue) }
  }

  func setHandler(_ handler: Handler?, onClose: (@Sendable () -> Void)? = nil) {
    lock.releasing {
      let old = body
      if state != .closed { body = handler.map { Body(handler: $0, onClose: onClose) } }
      return old
    }
  }

  /// Opens the stream; an event reports the outcome.
  ///
  /// Opening it again has no effect. The corresponding Core Foundation functions are `CFReadStreamOpen` and
  /// `CFWriteStreamOpen`.
  public func open() {
    guard lock.lockUnlessParents() else { return }
    guard state == .notOpen else { return lock.unlock() }
    var source: RunLoop.DescriptorSource?
    do throws(SystemError) {
      let (opened, isConnected) = try core.open()
      channel = opened
      if isConnected, opened.kind != .socket {
        // A pipe that is read never becomes writable, as a socket does that is connected.
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

  /// Closes the stream: it leaves all modes and its handler is not called again.
  ///
  /// The connection is closed with the second of its streams; an output stream that is closed first lets the peer see
  /// the end. Calling it again has no effect. The corresponding Core Foundation functions are `CFReadStreamClose` and
  /// `CFWriteStreamClose`.
  public func close() {
    // The connection of a parent is not for its child to shut down.
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
    body?.onClose?()
  }
}

/// The bytes from a connection, a pipe, a terminal or a file.
public final class InputByteStream: ByteStream, @unchecked Sendable {
  // Sendable: it has no variables beside those of the class above, and this.

  /// What reads it for a task.
  let taskReader = Atomic<UInt>(0)

  /// Reads the bytes that have arrived, without waiting.
  ///
  /// - Returns: How many bytes were read, zero at the end, or nil if there is nothing yet.
  /// - Throws: ``SocketError/invalid`` if the stream is not open, or the error that has happened to it.
  public func read(into bytes: UnsafeMutableRawBufferPointer) throws(SocketError) -> Int? {
    guard !bytes.isEmpty else { return 0 }
    return try transfer { channel throws(SocketError) in try core.receive(bytes, from: channel) }
  }
}

/// The bytes to a connection, a pipe, a terminal or a file.
public final class OutputByteStream: ByteStream, @unchecked Sendable {
  // Sendable: it has no variables beside those of the class above.

  /// Writes as much as there is room for, without waiting.
  ///
  /// - Returns: How many bytes were taken, or nil if there is no room; ``ByteStream/Event/canAcceptBytes`` reports when
  ///   there is.
  /// - Throws: ``SocketError/invalid`` if the stream is not open, or the error that has happened to it.
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SocketError) -> Int? {
    guard !bytes.isEmpty else { return 0 }
    return try transfer { channel throws(SocketError) in try core.send(bytes, to: channel) }
  }

  /// Writes as much as there is room for, as ``write(_:)-(UnsafeRawBufferPointer)`` does.
  public func write(_ bytes: [UInt8]) throws(SocketError) -> Int? {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(SocketError) in try write(bytes) }
    }
    return try result.get()
  }
}
