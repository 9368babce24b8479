// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import RunLoopHTTP
@testable import RunLoopURLConnection

@Suite("NSURLConnections that are cancelled or moved with pending call-outs")
struct CancelledConnectionTests {
  @Test("the pending call-outs of a cancelled connection do not delay the next one's")
  func waitingMail() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let log = await elsewhere {
      for _ in 0..<2 {
        let connection = NSURLConnection(request: server.request(), delegate: Recorder())
        waitUntil { connection?.connection.hasReceivedEnd ?? true }
        connection?.cancel()
      }
      let recorder = Recorder()
      let connection = NSURLConnection(request: server.request(), delegate: recorder)
      waitUntil { connection?.connection.hasReceivedEnd ?? true }
      // The mark is set before the signal.
      recorder.run()
      return recorder.log.text
    }
    #expect(log == "response 200 data finish")
  }

  @Test("call-outs pending when a connection is unscheduled are delivered when it is scheduled again")
  func movedMail() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let log = await elsewhere {
      let recorder = Recorder()
      guard let connection = NSURLConnection(request: server.request(), delegate: recorder) else { return "none" }
      waitUntil { connection.connection.hasReceivedEnd }
      for _ in 0..<2 {
        connection.unschedule(from: .current, forMode: .default)
        connection.schedule(in: .current, forMode: .default)
      }
      recorder.run()
      return recorder.log.text
    }
    #expect(log == "response 200 data finish")
  }

  @Test("a connection cancelled between the start's check and its retain is released")
  func lateHold() throws {
    let server = try LyingServer { _ in }
    var connection = NSURLConnection(request: server.request(), delegate: Recorder(), startImmediately: false)
    let held = WeakReference(connection)
    connection?.cancel()
    if let connection { connection.relay.hold(connection) }
    connection = nil
    #expect(held.object == nil)
  }
}

private struct WeakReference {
  weak var object: NSURLConnection?
  init(_ object: NSURLConnection?) { self.object = object }
}
