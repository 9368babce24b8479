// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

extension InputByteStream {
  /// Makes a stream that reads a descriptor of any kind, which it closes from now on: a pipe, a terminal, a socket, a
  /// file.
  ///
  /// Reading never waits. A descriptor that other processes have too, such as an inherited pipe, goes on to block for
  /// them. A regular file is always ready.
  ///
  /// - Throws: ``SocketError/descriptor(_:_:)``: `stat` with `EBADF`, `open (stream)`, `eventfd` or `epoll_ctl
  ///   (stream)` if the system has no resources left; the descriptor then stays the caller's.
  public convenience init(takingOver descriptor: Int32) throws(SocketError) {
    self.init(try ByteStreamCore(over: descriptor, writes: false, isOwned: true), .readable)
  }

  /// Makes a stream that reads the standard input, which stays open when the stream is closed.
  ///
  /// - Throws: The errors of ``init(takingOver:)``.
  public static func standardInput() throws(SocketError) -> InputByteStream {
    InputByteStream(try ByteStreamCore(over: STDIN_FILENO, writes: false, isOwned: false), .readable)
  }
}

extension OutputByteStream {
  /// Makes a stream that writes to a descriptor of any kind, which it closes from now on: a pipe, a terminal, a socket,
  /// a file.
  ///
  /// Writing never waits, and causes no signal: a pipe that nobody reads is an error with `EPIPE`. A descriptor that
  /// other processes have too goes on to block for them.
  ///
  /// - Throws: The errors of ``InputByteStream/init(takingOver:)``.
  public convenience init(takingOver descriptor: Int32) throws(SocketError) {
    self.init(try ByteStreamCore(over: descriptor, writes: true, isOwned: true), .writable)
  }

  /// Makes a stream that writes to the standard output, which stays open when the stream is closed.
  ///
  /// - Throws: The errors of ``InputByteStream/init(takingOver:)``.
  public static func standardOutput() throws(SocketError) -> OutputByteStream {
    OutputByteStream(try ByteStreamCore(over: STDOUT_FILENO, writes: true, isOwned: false), .writable)
  }

  /// Makes a stream that writes to the standard error, which stays open when the stream is closed.
  ///
  /// - Throws: The errors of ``InputByteStream/init(takingOver:)``.
  public static func standardError() throws(SocketError) -> OutputByteStream {
    OutputByteStream(try ByteStreamCore(over: STDERR_FILENO, writes: true, isOwned: false), .writable)
  }
}

extension ByteStreamCore {
  /// One stream over a descriptor.
  convenience init(over descriptor: Int32, writes: Bool, isOwned: Bool) throws(SocketError) {
    do throws(SystemError) {
      let channel = try ByteChannel.over(descriptor, writes: writes, isOwned: isOwned)
      let peer = channel.kind == .socket ? (try? channel.descriptor.peerAddress()) ?? nil : nil
      self.init(.connected(channel), at: peer?.unlessUnnamed, sides: 1)
    } catch {
      throw .descriptor(descriptor, error)
    }
  }
}
