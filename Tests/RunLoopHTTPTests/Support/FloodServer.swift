// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

@testable import RunLoopHTTP

/// A server that never responds, and sends the same bytes to every client as fast as they are read.
///
/// It writes on a thread that blocks, so that more bytes are always available.
final class FloodServer: Sendable {
  private let thread: ResidentThread
  private let listener: Int32
  let url: String
  /// The number of connections that have ended.
  let ended = Counter()

  /// - Parameters:
  ///   - frame: The bytes to send repeatedly.
  ///   - opening: The bytes to send first. Defaults to HTTP/2 settings.
  init(_ frame: [UInt8], after opening: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port: UInt16? = withUnsafeMutablePointer(to: &name) { [listener] in
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 5) == 0 && getsockname(listener, $0, &length) == 0
      } ? UInt16(bigEndian: $0.pointee.sin_port) : nil
    }
    guard let port else { throw HTTP.Error(.cannotConnect, "the server cannot listen") }
    url = "http://127.0.0.1:\(port)/"
    thread = try ResidentThread(name: "FloodServer")
    let frames = Array(repeatElement(frame, count: 1000).joined())
    try thread.perform { [listener, ended] in
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        var isThere = send(connection, opening, opening.count, Int32(MSG_NOSIGNAL)) > 0
        while isThere { isThere = send(connection, frames, frames.count, Int32(MSG_NOSIGNAL)) > 0 }
        close(connection)
        ended.add()
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    thread.stop()
    close(listener)
  }
}
