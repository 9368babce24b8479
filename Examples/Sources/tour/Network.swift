// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopHTTP
import RunLoopSockets

@MainActor func echo() async throws -> String {
  let listener = try ListeningSocket(at: .loopback(port: 0)) { _, event in
    guard case .accepted(let connection) = event else { return }
    connection.handler = { connection, event in
      if case .received(let bytes) = event { _ = try? connection.write(bytes) }
    }
    try? RunLoop.main.add(connection, forMode: .default)
  }
  defer { listener.invalidate() }
  try RunLoop.main.add(listener, forMode: .default)
  let client = try Socket(connectingTo: listener.address)
  defer { client.invalidate() }
  try RunLoop.main.add(client, forMode: .default)
  try await client.send(line: "hello")
  var lines = client.lines().makeAsyncIterator()
  let line = try await lines.next()
  guard line == "hello" else { throw Unexpected(line ?? "the connection ended") }
  return "\(listener.address) echoed \"hello\""
}

/// Sends the same response to the first request of each connection.
@MainActor private func answer(_ connection: Socket) async throws {
  defer { connection.invalidate() }
  try RunLoop.main.add(connection, forMode: .default)
  for try await line in connection.lines() where line.isEmpty || line == "\r" { break }
  try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
  _ = try await connection.receive()
}

@MainActor func request() async throws -> String {
  let listener = try ListeningSocket(at: .loopback(port: 0))
  try RunLoop.main.add(listener, forMode: .default)
  let server = Task {
    for try await connection in listener.connections { Task { try await answer(connection) } }
  }
  defer {
    server.cancel()
    listener.invalidate()
  }
  do {
    let (body, response) = try await withHTTPClient(on: .main) { client in
      try await client.data(for: HTTP.Request("http://\(listener.address)/"))
    }
    guard response.status.code == 200, body.text == "hello\n" else { throw Unexpected("\(response.status)") }
    return "status \(response.status), \(body.count) bytes"
  } catch let error as HTTP.Error where error.code == .noLibrary {
    return "not made: \(error)"
  }
}
