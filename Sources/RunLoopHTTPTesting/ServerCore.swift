// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets

final class Shared<Value>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func withLock<Result>(_ body: (inout Value) -> Result) -> Result { lock.withLock { body(&value) } }
}

/// The part of a server that its connections use.
final class ServerCore: Sendable {
  struct State {
    var requests: [HTTPTestServer.Request] = []
    var connections: [Int: Connection] = [:]
    var connectionCount = 0
    var isStopped = false
  }

  let loop: RunLoop
  let options: HTTPTestServer.Options
  let handler: HTTPTestServer.Handler
  let state = Shared(State())

  init(_ loop: RunLoop, _ options: HTTPTestServer.Options, _ handler: @escaping HTTPTestServer.Handler) {
    (self.loop, self.options, self.handler) = (loop, options, handler)
  }

  func accept(_ socket: Socket) {
    let connection = state.withLock { state -> Connection? in
      guard !state.isStopped else { return nil }
      let connection = Connection(socket, number: state.connectionCount, of: self)
      state.connections[state.connectionCount] = connection
      state.connectionCount += 1
      return connection
    }
    guard let connection else { return socket.invalidate() }
    socket.handler = { _, event in connection.take(event) }
    connection.awaitRequest()
    do { try loop.add(socket, forMode: .default) } catch { connection.abandon() }
  }

  func remove(_ connection: Connection) { _ = state.withLock { $0.connections.removeValue(forKey: connection.number) } }

  func stop() {
    let left = state.withLock { state in
      state.isStopped = true
      return state.connections.values.map { $0 }
    }
    for connection in left { connection.abandon() }
  }
}

final class Script: Sendable {
  private let responses: Shared<[String: [HTTPTestServer.Response]]>

  init(_ responses: [String: [HTTPTestServer.Response]]) { self.responses = Shared(responses) }

  func next(for request: HTTPTestServer.Request) -> HTTPTestServer.Response {
    responses.withLock { responses in
      for key in [request.line, request.path] {
        guard let list = responses[key], let first = list.first else { continue }
        if list.count > 1 { responses[key]?.removeFirst() }
        return first
      }
      return HTTPTestServer.Response(status: 404)
    }
  }
}
