import Glibc
import Synchronization
import Testing

/// A pipe of single bytes; neither end blocks.
final class RawPipe: Sendable {
  let reading: Int32
  let writing: Int32

  init() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    for end in ends {
      try #require(fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) == 0)
      try #require(fcntl(end, F_SETFD, FD_CLOEXEC) == 0)
    }
    (reading, writing) = (ends[0], ends[1])
  }

  deinit {
    close(reading)
    close(writing)
  }

  func write(_ bytes: [UInt8]) {
    if Glibc.write(writing, bytes, bytes.count) != bytes.count { Issue.record("nothing was written") }
  }

  /// Reads a byte, or −1 if there is none.
  func read() -> Int {
    var byte: UInt8 = 0
    return Glibc.read(reading, &byte, 1) == 1 ? Int(byte) : -1
  }
}

/// Counts, and does something at the last.
final class Counted: Sendable {
  private let counter = Atomic<Int>(0)
  private let last: Int
  private let body: @Sendable () -> Void

  init(_ last: Int, _ body: @escaping @Sendable () -> Void) {
    self.last = last
    self.body = body
  }

  var value: Int { counter.load(ordering: .relaxed) }

  func count() { if counter.wrappingAdd(1, ordering: .relaxed).newValue == last { body() } }
}
