// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Synchronization
import Testing

/// Counts, and calls a body at the last count.
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

/// A server on a loopback port that echoes what it has read from its first connection, and closes it.
final class LoopbackServer: Sendable {
  let port: UInt16
  private let listening: Int32

  init(_ answer: @escaping @Sendable (String) -> String) throws {
    let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(listening >= 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(listening, pointer, length) == 0 && listen(listening, 1) == 0
          && getsockname(listening, pointer, &length) == 0
      }
    }
    try #require(isBound)
    self.listening = listening
    port = UInt16(bigEndian: address.sin_port)
    thread = startThread {
      let connection = accept(listening, nil, nil)
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = Glibc.read(connection, &bytes, bytes.count)
      let text = Array(answer(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)).utf8)
      _ = Glibc.write(connection, text, text.count)
      close(connection)
    }
  }

  private let thread: StartedThread<Void>

  deinit {
    // Ends the wait for a connection.
    shutdown(listening, Int32(SHUT_RDWR))
    thread.result()
    close(listening)
  }
}
