// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// What the bytes of a stream pass through: a socket, or anything else that is read and written.
final class ByteChannel: Sendable {
  enum Kind: Hashable, Sendable {
    case socket
    /// It was opened so that it does not block.
    case nonBlocking
    /// Others have it too, for whom it blocks: it is used only when it is ready, and for little at a time.
    case blocking
  }

  let descriptor: OwnedDescriptor
  /// What a loop waits for: the descriptor as it was given, or, as the system waits for no file, one that is always
  /// ready.
  let watched: OwnedDescriptor
  let kind: Kind
  /// What the bytes are in, as far as its end has rules of its own.
  private let medium: Medium
  /// Whether the system waits for no such file.
  let isAlwaysReady: Bool

  private enum Medium: Hashable, Sendable {
    case pipe
    case terminal
    case other
  }

  /// How much a pipe that is ready takes without waiting (`PIPE_BUF`).
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

  /// Takes a descriptor of any kind over, or has a copy of one that stays the caller's.
  ///
  /// A pipe or a terminal may be others' too, such as the standard input, which is the shell's: it is opened once more,
  /// so that it does not block here and continues to block there. Bytes pass through the second descriptor alone. The
  /// loop waits for the first, which stays open: a second one has not seen the writers that have left already, and
  /// without the first a pipe that was opened for reading and writing would end with its first writer. The descriptor
  /// stays the caller's if this throws.
  static func over(_ number: Int32, writes: Bool, isOwned: Bool) throws(SystemError) -> ByteChannel {
    let type = try SystemCall.fileStatus.make { crl_file_type(number) }
    if type == crl_file_type_socket { return ByteChannel(try descriptor(number, isOwned: isOwned), .socket) }
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
        // Another user's terminal, a device, or a system without /proc: it is used as it is.
        guard error.number != EMFILE, error.number != ENFILE else { throw error }
      }
    }
    let kind: Kind = opened != nil || !isWatchable ? .nonBlocking : .blocking
    let medium: Medium =
      type == crl_file_type_pipe ? .pipe : isWatchable && crl_is_terminal(number) != 0 ? .terminal : .other
    let given = try descriptor(number, isOwned: isOwned)
    return ByteChannel(opened ?? given, kind, medium, watched: watched ?? given, isAlwaysReady: !isWatchable)
  }

  /// The descriptor itself, which no program inherits from now on, or a copy of one that stays the caller's.
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

  /// Receives at most so many bytes; nil: there are none now; zero: the end.
  @inline(__always)
  func receive(_ bytes: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int? {
    guard kind != .socket else { return try descriptor.receive(bytes) }
    guard try isReady(writes: false) else { return nil }
    do {
      let count = try SystemCall.fileRead.makeUninterrupted {
        crl_read(descriptor.number, bytes.baseAddress, min(bytes.count, Int(Int32.max)))
      }
      // A pipe whose first writer has yet to come reads as one whose last has left.
      if count == 0, medium == .pipe, try !hasHungUp() { return nil }
      return Int(count)
    } catch {
      switch error.number {
      case EAGAIN:
        // A terminal that was hung up before it was opened the second time is at its end by the first alone.
        guard medium == .terminal else { return nil }
        return try hasHungUp() ? 0 : nil
      case EIO where crl_is_terminal_master(descriptor.number) != 0:
        // The end of a pseudo-terminal: no program has its other side open.
        return 0
      default: throw error
      }
    }
  }

  private func hasHungUp() throws(SystemError) -> Bool {
    try SystemCall.fileReady.makeUninterrupted { crl_has_hung_up(watched.number) } > 0
  }

  /// Sends as many bytes as there is room for.
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
