// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets

/// Sends numbers on many connections, one at a time on each.
final class Load: @unchecked Sendable {
  // Sendable: used only on the thread of its loop, which calls the handlers.

  private let loop = RunLoop.current
  private let count: Int
  private let seconds: Int
  private var sockets: [Socket] = []
  private var lines: [Socket: Lines] = [:]
  private var next: Int32 = 1
  private var acknowledged: [Int32] = []

  init(connections: Int, seconds: Int) {
    count = connections
    self.seconds = seconds
  }

  /// Runs until the time is over or the server has closed, and prints the acknowledged numbers per second.
  func run(port: UInt16) throws {
    let address = try SocketAddress(host: "127.0.0.1", port: port)
    for _ in 0..<count {
      let socket = try Socket(connectingTo: address) { [unowned self] socket, event in
        switch event {
        case .connected: send(on: socket)
        case .received(let bytes): bytes.withUnsafeBytes { receive($0, on: socket) }
        case .ended, .closed: loop.stop()
        case .readable, .writable: break
        }
      }
      lines[socket] = Lines()
      try loop.add(socket, forMode: .default)
      sockets.append(socket)
    }
    let begin = loop.now
    // A second run uses other numbers than the first.
    next = Int32(truncatingIfNeeded: Int(time(nil)) % 200 * 10_000_000 + 1)
    loop.run(mode: .default, for: .seconds(seconds))
    let elapsed = begin.duration(to: loop.now) / .seconds(1)
    say("\(Int(Double(acknowledged.count) / elapsed))", on: STDOUT_FILENO)
  }

  private func send(on socket: Socket) {
    do { _ = try socket.write("\(next)\n") } catch { loop.stop() }
    next += 1
  }

  private func receive(_ bytes: UnsafeRawBufferPointer, on socket: Socket) {
    let isNumber = lines[socket]?.take(bytes) { number in
      acknowledged.append(number)
      send(on: socket)
    }
    if isNumber != true { fail("the server has not written a number") }
  }

  /// Writes the acknowledged numbers, one on each line.
  func write(to file: String) throws(Store.Failure) {
    guard let output = fopen(file, "we") else { throw .cannotRead(file, errno) }
    for number in acknowledged { fputs("\(number)\n", output) }
    fclose(output)
  }
}
