// SPDX-License-Identifier: Apache-2.0

// A service: it answers lines over TCP, and stops in order when systemd, a container or a person asks it to.
//
//     swift run --package-path Examples service [PORT]
//
// The README beside this file has its unit and its image. It prints where it listens, and when it stops what became of
// each part. A line is a request; one that is a number takes as many milliseconds, as real work does.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads

/// Writes a line at once, also to a file.
@Sendable func say(_ text: String) {
  print(text)
  fflush(nil)
}

/// Tells the service manager something, if there is one.
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
  // A socket that systemd holds for us: clients wait there while the service is started again.
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
  // The last one first.
  shutdown.add("thread") {
    thread.stop()
    _ = await thread.finished()
  }
  shutdown.add("connections", listener, endsInput: true)
  shutdown.add("notice") { notify("STOPPING=1") }
  try RunLoop.main.add(shutdown, forMode: .common)

  // The first process of a container is the parent of all orphans there.
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
