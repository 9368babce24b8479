// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The loop on which a connection calls its delegate, while it changes.
@Suite("Connections that several threads schedule", .serialized, .timeLimit(.minutes(20)))
struct ConnectionScheduleTests {
  /// Records the threads that call it.
  private final class Listener: ConnectionDelegate {
    let threads = Box<Set<Int32>>([])
    let ended = Latch()

    private func note() { threads.update { _ = $0.insert(RunLoop.callingThreadID) } }
    func connection(didReceive response: HTTP.Response) { note() }
    func connection(didReceive bytes: [UInt8]) { note() }
    func connectionDidEnd(_ error: HTTP.Error?) {
      note()
      ended.open()
    }
  }

  /// Creates a client whose requests complete without a network.
  private static func makeClient() -> HTTP.Client {
    var configuration = HTTP.Configuration()
    configuration.interceptors = [.init { _ in .respond(HTTP.Response(status: 200), HTTP.Body([1, 2, 3])) }]
    return HTTP.Client(configuration)
  }

  enum Change: CaseIterable { case places, executors }

  @Test("delegates are called on their loop only, whatever is added or removed", arguments: Change.allCases)
  func races(_ change: Change) async throws {
    let client = Self.makeClient()
    let thread = try ResidentThread(name: "delegate")
    let (loop, mode) = (thread.runLoop, RunLoop.Mode.default)
    let own = try await thread.run { RunLoop.callingThreadID }
    let request = HTTP.Request("http://127.0.0.1/")
    let silent = Listener()
    let restless = HTTP.Connection(client, request, delegate: silent)
    // It runs, and never receives anything.
    restless.pause()
    restless.schedule(in: loop, forMode: mode)
    restless.start()
    let isOver = Latch()
    // These have their own threads, as other tests need the pool's.
    let disturbers = try (0..<2).map { try ResidentThread(name: "disturber \($0)") }
    for disturber in disturbers {
      try disturber.perform { Self.disturb(restless, change, loop, mode, until: isOver) }
    }
    let threads = Box<Set<Int32>>([])
    let starter = try ResidentThread(name: "starter")
    try await starter.run {
      for _ in 0..<(isSanitizedForThreads ? 200 : 1000) {
        let listener = Listener()
        let connection = HTTP.Connection(client, request, delegate: listener)
        connection.schedule(in: loop, forMode: mode)
        connection.start()
        listener.ended.wait()
        threads.update { $0.formUnion(listener.threads.value) }
      }
    }
    isOver.open()
    for thread in disturbers + [starter] {
      thread.stop()
      _ = await thread.finished()
    }
    #expect(threads.value == [own])
    restless.cancel()
    #expect(silent.threads.value == [])
    client.stop()
    _ = await client.finished()
    thread.stop()
  }

  private static func disturb(
    _ connection: HTTP.Connection, _ change: Change, _ loop: RunLoop, _ mode: RunLoop.Mode, until isOver: Latch
  ) {
    while !isOver.isOpen {
      switch change {
      case .places:
        connection.schedule(in: loop, forMode: mode)
        connection.unschedule(from: loop, forMode: mode)
      case .executors:
        connection.setExecutor { $0() }
        connection.setExecutor(nil)
      }
    }
  }

  @Test("an executor that was replaced delivers none of its pending calls")
  func replacedExecutor() async throws {
    let client = Self.makeClient()
    let listener = Listener()
    let (old, new) = (Box<[@Sendable () -> Void]>([]), Box<[@Sendable () -> Void]>([]))
    let connection = HTTP.Connection(client, HTTP.Request("http://127.0.0.1/"), delegate: listener)
    connection.setExecutor { body in old.update { $0.append(body) } }
    connection.start()
    await eventually { connection.hasReceivedEnd && !old.value.isEmpty }
    connection.setExecutor { body in new.update { $0.append(body) } }
    for body in old.value { body() }
    #expect(listener.threads.value == [])
    #expect(!connection.hasEnded)
    for body in new.value { body() }
    #expect(connection.hasEnded && listener.ended.isOpen)
    client.stop()
    _ = await client.finished()
  }
}
