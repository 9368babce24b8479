// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The channel that carries a stream's bytes: a socket, or any other descriptor that can be read or written.
final class ByteChannel: Sendable {
  enum Kind: Hashable, Sendable {
    case socket
    /// The descriptor was opened in nonblocking mode.
    case nonBlocking
    /// The open file is shared with other processes and blocks. It is used only when it is ready, with small transfers.
    case blocking
  }

  let descriptor: OwnedDescriptor
  /// The descriptor that a loop watches: the original one or, for a file that epoll cannot watch, one that is always
  /// ready.
  let watched: OwnedDescriptor
  let kind: Kind
  /// The type of file, as far as its end needs special handling.
  private let medium: Medium
  /// Whether the descriptor is a file that epoll cannot watch.
  let isAlwaysReady: Bool

  private enum Medium: Hashable, Sendable {
    case pipe
    case terminal
    case other
  }

  /// The number of bytes that a ready pipe accepts without blocking (`PIPE_BUF`).
  private static let piece = 4096

  init(_ descriptor: OwnedDescriptor, _ kind: Kind) {
    self.descriptor = descriptor
    watched = descriptor
    self.kind = kind
    medium = .other
    isAlwaysReady = false
  }

  private init(
    _ descriptor: OwnedDescriptor, _ kind: Kind, _ medium: Medium, watched: OwnedDescriptor, isAlwaysReady: Bool
  ) {
    self.descriptor = descriptor
    self.watched = watched
    self.kind = kind
    self.medium = medium
    self.isAlwaysReady = isAlwaysReady
  }

  /// Takes over a descriptor of any type, or duplicates one that the caller keeps.
  ///
  /// A pipe or terminal may be shared with other processes, such as the standard input with the shell. It is therefore
  /// reopened, so that it is nonblocking here and stays blocking there. Bytes pass only through the reopened
  /// descriptor. The loop watches the original, which stays open: the reopened one does not report writers that left
  /// earlier, and without the original a pipe opened for reading and writing would end with its first writer. If this
  /// throws, the caller still owns the descriptor.
  static func over(_ number: Int32, writes: Bool, isOwned: Bool) throws(SystemError) -> ByteChannel {
    let type = try SystemCall.fileStatus.make { crl_file_type(number) }
    if type == crl_file_type_socket { return ByteChannel(try descriptor(number, isOwned: isOwned), .socket) }
    // The wrong end of a pipe never becomes ready, and opening it again would give the other one.
    let flags = fcntl(number, F_GETFL)
    guard flags < 0 || flags & O_ACCMODE != (writes ? O_RDONLY : O_WRONLY) else {
      throw SystemError(call: (writes ? SystemCall.fileWrite : .fileRead).rawValue, number: EBADF)
    }
    let isWatchable = try SystemCall.fileWatchable.make { crl_is_watchable(number) } == 1
    var watched: OwnedDescriptor?
    if !isWatchable {
      let counter = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
      _ = try SystemCall.eventWrite.makeUninterrupted { crl_event_write(counter.number) }
      watched = counter
    }
    var opened: OwnedDescriptor?
    if isWatchable {
      do throws(SystemError) {
        opened = OwnedDescriptor(try SystemCall.fileReopen.make { crl_reopen(number, writes ? 1 : 0) })
      } catch {
        // Another user's terminal, a device, or a system without /proc. Use the descriptor as it is.
        guard error.number != EMFILE, error.number != ENFILE else { throw error }
      }
    }
    let kind: Kind = opened != nil || !isWatchable ? .nonBlocking : .blocking
    let medium: Medium =
      type == crl_file_type_pipe ? .pipe : isWatchable && crl_is_terminal(number) != 0 ? .terminal : .other
    let given = try descriptor(number, isOwned: isOwned)
    return ByteChannel(opened ?? given, kind, medium, watched: watched ?? given, isAlwaysReady: !isWatchable)
  }

  /// Returns the descriptor itself, marked close-on-exec, or a duplicate of one that the caller keeps.
  private static func descriptor(_ number: Int32, isOwned: Bool) throws(SystemError) -> OwnedDescriptor {
    guard isOwned else { return try copy(of: number) }
    try SystemCall.closeOnExec(number)
    return OwnedDescriptor(number)
  }

  private static func copy(of number: Int32) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(
      try SystemCall.duplicate.make {
        let answer = fcntl(number, F_DUPFD_CLOEXEC, 3)
        return answer < 0 ? -errno : answer
      })
  }

  /// Receives up to `bytes.count` bytes, or returns `nil` if the read would block and 0 at the end of the stream.
  @inline(__always)
  func receive(_ bytes: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int? {
    guard kind != .socket else { return try descriptor.receive(bytes) }
    guard try isReady(writes: false) else { return nil }
    do {
      let count = try SystemCall.fileRead.makeUninterrupted {
        crl_read(descriptor.number, bytes.baseAddress, min(bytes.count, Int(Int32.max)))
      }
      // A pipe that no writer has opened yet reads like one whose last writer has closed it.
      if count == 0, medium == .pipe, try !hasHungUp() { return nil }
      return Int(count)
    } catch {
      switch error.number {
      case EAGAIN:
        // If a terminal was hung up before it was reopened, only the original descriptor reports the end.
        guard medium == .terminal else { return nil }
        return try hasHungUp() ? 0 : nil
      case EIO where crl_is_terminal_master(descriptor.number) != 0:
        // This is the end of a pseudo-terminal: no program has its other side open.
        return 0
      default: throw error
      }
    }
  }

  private func hasHungUp() throws(SystemError) -> Bool {
    try SystemCall.fileReady.makeUninterrupted { crl_has_hung_up(watched.number) } > 0
  }

  /// Sends as many bytes as the system accepts, and returns their number.
  @inline(__always)
  func send(_ bytes: UnsafeRawBufferPointer) throws(SystemError) -> Int {
    guard kind != .socket else { return try descriptor.send(bytes) }
    guard try isReady(writes: true) else { return 0 }
    let count = kind == .blocking ? min(bytes.count, Self.piece) : bytes.count
    do {
      return Int(
        try SystemCall.fileWrite.makeUninterrupted { crl_write(descriptor.number, bytes.baseAddress, count) })
    } catch {
      guard error.number == EAGAIN else { throw error }
      return 0
    }
  }

  private func isReady(writes: Bool) throws(SystemError) -> Bool {
    guard kind == .blocking else { return true }
    return try SystemCall.fileReady.makeUninterrupted { crl_is_ready(descriptor.number, writes ? 1 : 0) } > 0
  }
}
