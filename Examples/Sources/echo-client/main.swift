// SPDX-License-Identifier: Apache-2.0

// Sends its standard input to a server, and prints the bytes it receives.
//
//     swift run --package-path Examples echo-client HOST PORT
//
// The host may be a name. The program ends when the server closes the connection, which an echo server does after the
// end of the input.

import Glibc
import RunLoopCore
import RunLoopSockets

@Sendable func say(_ message: String) {
  var line = "echo-client: \(message)\n"
  line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

@Sendable func fail(_ message: String, status: Int32 = 1) -> Never {
  say(message)
  exit(status)
}

guard CommandLine.arguments.count == 3, let port = UInt16(CommandLine.arguments[2]) else {
  fail("usage: echo-client HOST PORT", status: 2)
}

let loop = RunLoop.current

/// Connects to the first address that accepts, and then forwards bytes in both directions.
@Sendable func connect(_ addresses: ArraySlice<SocketAddress>) {
  guard let address = addresses.first else { fail("no address of the server answers") }
  do {
    var options = Socket.Options()
    options.connectTimeout = .seconds(10)
    let socket = try Socket(connectingTo: address, options: options) { socket, event in
      switch event {
      case .connected: sendInput(socket)
      case .received(let bytes): bytes.withUnsafeBytes(printOut)
      case .writable, .readable, .ended: break
      case .closed(nil): loop.stop()
      case .closed(let error?):
        say("\(address): \(error)")
        if case .system(let error, _) = error, error.call != "connect" { exit(1) }
        connect(addresses.dropFirst())
      }
    }
    try loop.add(socket, forMode: .default)
  } catch {
    say("\(address): \(error)")
    connect(addresses.dropFirst())
  }
}

/// Reads the standard input on another thread, as it may be a file, and only as fast as the server reads.
@Sendable func sendInput(_ socket: Socket) {
  Task.detached {
    var bytes = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = read(STDIN_FILENO, &bytes, bytes.count)
      guard count > 0 else { return socket.shutDown(.write) }
      do { try await socket.send(Array(bytes[..<count])) } catch { return }
    }
  }
}

@Sendable func printOut(_ bytes: UnsafeRawBufferPointer) {
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = write(STDOUT_FILENO, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
    guard count > 0 else { fail("the standard output takes no more") }
    rest = rest.dropFirst(count)
  }
}

HostResolver.resolve(CommandLine.arguments[1], port: port, on: loop) { answer in
  switch answer {
  case .success(let addresses): connect(addresses[...])
  case .failure(let error): fail("\(error)")
  }
}
// At first, the loop may have nothing but the look-up.
loop.add(RunLoop.Source {}, forMode: .default)
loop.runUntilStopped()
