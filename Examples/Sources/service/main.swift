// SPDX-License-Identifier: Apache-2.0

// A service that replies to lines over TCP, and shuts down in order on SIGTERM or SIGINT.
//
//     swift run --package-path Examples service [PORT]
//
// The README beside this file has its systemd unit and container image. The program prints its address and, when it
// stops, the result of each step. Each line is a request. A number simulates that many milliseconds of work.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads

/// Writes a line without buffering, even to a file.
@Sendable func say(_ text: String) {
  print(text)
  fflush(nil)
}

/// Sends a notification to the service manager, if there is one.
func notify(_ state: String) {
  guard let name = getenv("NOTIFY_SOCKET").map({ String(cString: $0) }) else { return }
  do {
    let address =
      try name.hasPrefix("@")
      ? SocketAddress(abstractName: String(name.dropFirst())) : SocketAddress(path: name)
    let manager = try DatagramSocket(boundTo: nil, connectedTo: address)
    try manager.send(Array(state.utf8))
    manager.invalidate()
  } catch {
    say("the service manager does not listen: \(error)")
  }
}

func serve(_ connection: Socket, on loop: RunLoop) async {
  do {
    try loop.add(connection, forMode: .default)
    for try await request in connection.lines(upTo: 1000) {
      if let time = Int(request) { try await loop.sleep(for: .milliseconds(time)) }
      try await connection.send(line: "done \(request)")
    }
    connection.shutDown(.write)
  } catch {
    connection.invalidate()
  }
}

func makeListener() throws -> ListeningSocket {
  var options = ListeningSocket.Options()
  options.accepted.readTimeout = .seconds(60)
  options.accepted.writeTimeout = .seconds(10)
  // A socket held by systemd, at which clients wait while the service restarts.
  if let activated = try SocketActivation.take().first {
    options.removesFile = false
    return try ListeningSocket(takingOver: activated.number, options: options)
  }
  return try ListeningSocket(at: .any(port: CommandLine.arguments.dropFirst().first.flatMap { UInt16($0) } ?? 0))
}

func run() throws {
  let thread = try ResidentThread(name: "connections")
  let loop = thread.runLoop
  let listener = try makeListener()
  try loop.add(listener, forMode: .default)
  Task.detached { for try await connection in listener.connections { Task { await serve(connection, on: loop) } } }

  let shutdown = try GracefulShutdown { report in
    say("\(report)")
    exit(report.exitCode)
  }
  // Steps run in reverse order.
  shutdown.add("thread") {
    thread.stop()
    _ = await thread.finished()
  }
  shutdown.add("connections", listener, endsInput: true)
  shutdown.add("notice") { notify("STOPPING=1") }
  try RunLoop.main.add(shutdown, forMode: .common)

  // The first process of a container becomes the parent of all orphans.
  if getpid() == 1 { try RunLoop.main.add(OrphanReaper(), forMode: .common) }
  say("listening on \(listener.address)")
  notify("READY=1")
}

do {
  try run()
  RunLoop.main.runUntilStopped()
} catch {
  say("service: \(error)")
  exit(1)
}
