// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopKit
import RunLoopSockets
import TestSupport
import XCTest

/// Handlers on the main actor, which requires XCTest's main thread; under Swift Testing, the main thread has exited.
final class MainThreadActorTests: XCTestCase {
  func testItemsOfEveryKindCallOnTheMainActor() throws {
    try MainActor.assumeIsolated { try MainActorCalls().callByEveryKind() }
  }

  func testASocketsEventsCallOnTheMainActor() throws {
    try MainActor.assumeIsolated { try MainActorCalls().callBySocket() }
  }
}

@MainActor
private final class MainActorCalls {
  private var expected = 0
  private var calls: [String] = [] {
    didSet { if calls.count == expected { RunLoop.main.stop() } }
  }

  private func run(untilCalls count: Int) {
    expected = count
    if calls.count < count { RunLoop.main.runUntilStopped() }
  }

  func callByEveryKind() throws {
    let loop = RunLoop.main
    let timer = loop.schedule(in: .zero, block: MainActor.handler { [self] _ in calls.append("timer") })
    run(untilCalls: 1)
    let source = RunLoop.Source(perform: MainActor.handler { [self] in calls.append("source") })
    loop.add(source, forMode: .default)
    source.signal()
    run(untilCalls: 2)
    loop.perform(MainActor.handler { [self] in calls.append("block") })
    run(untilCalls: 3)
    let port = Port(handler: MainActor.handler { [self] _, message in calls.append("port \(message.id)") })
    loop.add(port, forMode: .default)
    try port.send(Port.Message(id: 7))
    run(untilCalls: 4)
    var ends: [Int32] = [0, 0]
    XCTAssertEqual(pipe(&ends), 0)
    let readable = RunLoop.DescriptorSource(
      descriptor: ends[0], events: .readable, repeats: false,
      handler: MainActor.handler { [self] _, events in calls.append("descriptor \(events)") })
    try loop.add(readable, forMode: .default)
    XCTAssertEqual(write(ends[1], "x", 1), 1)
    run(untilCalls: 5)
    for end in ends { close(end) }
    source.invalidate()
    port.invalidate()
    XCTAssertFalse(timer.isValid)
    XCTAssertEqual(
      calls, ["timer", "source", "block", "port 7", "descriptor \(RunLoop.DescriptorSource.Events.readable)"])
  }

  func callBySocket() throws {
    let listener = try ListeningSocket(at: SocketAddress.loopback(port: 0)) { _, event in
      guard case .accepted(let socket) = event else { return }
      socket.handler = { socket, event in
        if case .received(let bytes) = event { _ = try? socket.write(bytes) }
      }
      try? RunLoop.main.add(socket, forMode: .default)
    }
    try RunLoop.main.add(listener, forMode: .default)
    let socket = try Socket(
      connectingTo: listener.address,
      handler: MainActor.handler { [self] socket, event in
        switch event {
        case .connected: _ = try? socket.write("over and back")
        case .received(let bytes):
          calls.append(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
          socket.invalidate()
        default: break
        }
      })
    try RunLoop.main.add(socket, forMode: .default)
    run(untilCalls: 1)
    listener.invalidate()
    XCTAssertEqual(calls, ["over and back"])
  }
}
