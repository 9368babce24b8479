// SPDX-License-Identifier: Apache-2.0

import Glibc
package import RunLoopCore
import Synchronization

/// Two connected descriptors, closed on deinitialization.
///
/// Both are nonblocking, so that a spurious call of a handler does not hang its test.
package final class RawPipe: Sendable {
  package enum Kind: Sendable {
    /// Bytes written to one end are read from the other.
    case oneWay
    /// Both ends can be read and written.
    case socket
  }

  package let reading: Int32
  package let writing: Int32
  private let isReadingOpen = Atomic<Bool>(true)
  private let isWritingOpen = Atomic<Bool>(true)

  package init(_ kind: Kind = .oneWay) throws(SystemError) {
    var ends: [Int32] = [0, 0]
    let call =
      switch kind {
      case .oneWay: ("pipe", pipe(&ends))
      case .socket: ("socketpair", socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends))
      }
    guard call.1 == 0 else { throw SystemError(call: call.0, number: errno) }
    for end in ends {
      _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    (reading, writing) = (ends[0], ends[1])
  }

  deinit {
    closeReading()
    closeWriting()
  }

  package func closeReading() { if isReadingOpen.exchange(false, ordering: .relaxed) { close(reading) } }

  package func closeWriting() { if isWritingOpen.exchange(false, ordering: .relaxed) { close(writing) } }

  /// Transfers the writing end to the caller, which closes it.
  package func takeWriting() -> Int32 {
    isWritingOpen.store(false, ordering: .relaxed)
    return writing
  }

  /// Waits until the kernel reports that every copy of one end is closed.
  ///
  /// A process that another test is just starting holds a copy until it executes its own program.
  package func awaitEnd() {
    let open = isReadingOpen.load(ordering: .relaxed) ? reading : writing
    var entry = pollfd(fd: open, events: 0, revents: 0)
    while poll(&entry, 1, -1) <= 0 {}
  }

  /// Duplicates the reading end to a number that no other descriptor has had or will have.
  package func duplicateReading() -> Int32 {
    let lowest = RawPipe.lastDuplicate.wrappingAdd(1, ordering: .relaxed).newValue
    let number = fcntl(reading, F_DUPFD_CLOEXEC, lowest)
    precondition(number == lowest, "the number \(lowest) is taken")
    return number
  }

  /// New descriptors get the lowest free numbers, so nothing else reaches the highest ones.
  private static let lastDuplicate = Atomic<Int32>(highestDescriptor - 300)

  private static var highestDescriptor: Int32 {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return Int32(clamping: limit.rlim_cur)
  }

  package func write(_ bytes: [UInt8] = [7]) {
    let count = Glibc.write(writing, bytes, bytes.count)
    precondition(count == bytes.count, "nothing was written")
  }

  /// Reads up to `count` bytes that are available.
  @discardableResult
  package func read(_ count: Int = 1) -> [UInt8] { readBytes(reading, count) }
}

/// Reads up to `count` bytes that are available.
@discardableResult
package func readBytes(_ descriptor: Int32, _ count: Int = 1) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: count)
  let answer = read(descriptor, &bytes, count)
  return Array(bytes.prefix(max(0, answer)))
}

/// Whether `poll` reports exactly that a descriptor is readable.
package func isReadableNow(_ descriptor: Int32) -> Bool {
  var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
  return poll(&entry, 1, 0) == 1 && entry.revents == Int16(POLLIN)
}

/// Waits until a descriptor is readable.
package func awaitReadable(_ descriptor: Int32) {
  var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
  while poll(&entry, 1, -1) != 1 {}
}
