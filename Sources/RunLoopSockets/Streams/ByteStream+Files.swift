// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

extension InputByteStream {
  /// Creates a stream that reads from a descriptor of any type, such as a pipe, terminal, socket or file, and owns it.
  ///
  /// Reading never blocks. A descriptor that is shared with other processes, such as an inherited pipe, remains
  /// blocking for them. A regular file is always ready.
  ///
  /// - Throws: ``SocketError/descriptor(_:_:)`` for `stat` with `EBADF`, for `read (stream)` or `write (stream)` with
  ///   `EBADF` if the descriptor is open only in the other direction, or for `open (stream)`, `eventfd` or
  ///   `epoll_ctl (stream)` if the system lacks resources. The caller then still owns the descriptor.
  public convenience init(takingOver descriptor: Int32) throws(SocketError) {
    self.init(try ByteStreamCore(over: descriptor, writes: false, isOwned: true), .readable)
  }

  /// Creates a stream that reads the standard input, which stays open when the stream is closed.
  ///
  /// - Throws: The errors of ``init(takingOver:)``.
  public static func standardInput() throws(SocketError) -> InputByteStream {
    InputByteStream(try ByteStreamCore(over: STDIN_FILENO, writes: false, isOwned: false), .readable)
  }
}

extension OutputByteStream {
  /// Creates a stream that writes to a descriptor of any type, such as a pipe, terminal, socket or file, and owns it.
  ///
  /// Writing never blocks and raises no signal: writing to a pipe without a reader fails with `EPIPE`. A descriptor
  /// that is shared with other processes remains blocking for them.
  ///
  /// - Throws: The errors of ``InputByteStream/init(takingOver:)``.
  public convenience init(takingOver descriptor: Int32) throws(SocketError) {
    self.init(try ByteStreamCore(over: descriptor, writes: true, isOwned: true), .writable)
  }

  /// Creates a stream that writes to the standard output, which stays open when the stream is closed.
  ///
  /// - Throws: The errors of ``InputByteStream/init(takingOver:)``.
  public static func standardOutput() throws(SocketError) -> OutputByteStream {
    OutputByteStream(try ByteStreamCore(over: STDOUT_FILENO, writes: true, isOwned: false), .writable)
  }

  /// Creates a stream that writes to the standard error, which stays open when the stream is closed.
  ///
  /// - Throws: The errors of ``InputByteStream/init(takingOver:)``.
  public static func standardError() throws(SocketError) -> OutputByteStream {
    OutputByteStream(try ByteStreamCore(over: STDERR_FILENO, writes: true, isOwned: false), .writable)
  }
}

extension ByteStreamCore {
  /// Creates the core of a single stream over a descriptor.
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
