// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopTransactions

/// Replies to each number once it is stored in the file.
final class Server: @unchecked Sendable {
  // Sendable: used only on the thread of its loop, which calls the handlers, the stages and the observers.

  private let loop = RunLoop.current
  private let pipeline: CommitPipeline
  private let store: Store
  private let commitsEach: Bool
  private var connections: [Socket: Lines] = [:]
  /// The requests of this turn, and the replies to send.
  private var requests: [(connection: Socket, number: Int32)] = []
  private var answers: [Socket: String] = [:]

  init(file: String, commitsEach: Bool) throws {
    store = try Store(file: file)
    self.commitsEach = commitsEach
    // Commits are not tied to screen frames: each turn may commit.
    pipeline = CommitPipeline(loop: loop, frameInterval: .zero)
    pipeline.add(.init(name: "write") { [unowned self] in writeTurn() })
    pipeline.add(.init(name: "answer", order: TurnOrder.afterCommit) { [unowned self] in answerTurn() })
  }

  func serve(port: UInt16) throws {
    let listener = try ListeningSocket(at: SocketAddress(host: "127.0.0.1", port: port)) { [unowned self] _, event in
      switch event {
      case .accepted(let connection): accept(connection)
      case .exhausted(let error): say("turn-commit: no connection can be accepted now: \(error)")
      case .closed(let error): fail("\(error)")
      }
    }
    try loop.add(listener, forMode: .default)
    for signal in [SIGINT, SIGTERM] {
      try loop.add(SignalSource(signal: signal) { [loop] _, _ in loop.stop() }, forMode: .default)
    }
    say("listening on \(listener.address)", on: STDOUT_FILENO)
    loop.runUntilStopped()
  }

  private func accept(_ connection: Socket) {
    connection.handler = { [unowned self] connection, event in
      switch event {
      case .received(let bytes): bytes.withUnsafeBytes { receive($0, from: connection) }
      case .ended: connection.shutDown(.write)
      case .closed: connections[connection] = nil
      case .connected, .readable, .writable: break
      }
    }
    connections[connection] = Lines()
    do { try loop.add(connection, forMode: .default) } catch { say("turn-commit: \(error)") }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer, from connection: Socket) {
    var numbers: [Int32] = []
    guard connections[connection]?.take(bytes, { numbers.append($0) }) == true else {
      say("turn-commit: what a client has sent is not a number; its connection is closed")
      connections[connection] = nil
      return connection.invalidate()
    }
    for number in numbers {
      requests.append((connection, number))
      if commitsEach {
        writeTurn()
        answerTurn()
      } else {
        pipeline.setNeedsCommit()
      }
    }
  }

  /// Writes everything received since the last transaction in a single one.
  private func writeTurn() {
    guard !requests.isEmpty else { return }
    if store.write(requests.lazy.map(\.number)) {
      for (connection, number) in requests { answers[connection, default: ""] += "\(number)\n" }
    } else {
      // If the transaction failed because of one request, the others are still written.
      for (connection, number) in requests {
        answers[connection, default: ""] += store.write(CollectionOfOne(number)) ? "\(number)\n" : "-\n"
      }
    }
    requests.removeAll(keepingCapacity: true)
  }

  /// Makes one write for each connection with replies.
  private func answerTurn() {
    for (connection, answer) in answers {
      do {
        _ = try connection.write(answer)
      } catch {
        // The client has disconnected or does not read.
        connection.invalidate()
        connections[connection] = nil
      }
    }
    answers.removeAll(keepingCapacity: true)
  }
}
