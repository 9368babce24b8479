// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Testing

// Imports both modules without qualification: this file compiles only if each name refers to this package's type.
@Suite("The umbrella beside Foundation")
struct UmbrellaTests {
  @Test("types that Foundation has too are ours, and Foundation's can still be named")
  func names() {
    let loop: RunLoop = RunLoop.main
    let port: Port = Port()
    let thread: Thread = Thread {}
    #expect(type(of: loop) != Foundation.RunLoop.self)
    #expect(Timer.self != Foundation.Timer.self)
    #expect(type(of: port) != Foundation.Port.self)
    #expect(type(of: thread) != Foundation.Thread.self)
    let message: PortMessage = PortMessage(sendPort: port, receivePort: nil, components: nil)
    #expect(type(of: message) != Foundation.PortMessage.self)
    final class Receiver: PortDelegate {}
    let receiver: any PortDelegate = Receiver()
    #expect(!(receiver is any Foundation.PortDelegate))
  }

  @Test("Foundation's spelling of a timer runs on our loop")
  func timer() async {
    let fired = await withCheckedContinuation { continuation in
      let thread = Thread {
        let loop = RunLoop.current
        let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in loop.stop() }
        let result = loop.runUntilStopped()
        continuation.resume(returning: result == .stopped && !timer.isValid)
      }
      thread.start()
    }
    #expect(fired)
  }

  @Test("loops, timers and ports are hashable by identity, and may cross threads")
  func identity() {
    func requireSendable(_: some Sendable & Hashable) {}
    requireSendable(RunLoop.main)
    requireSendable(Port())
    let timer = Timer(timeInterval: 1, repeats: true) { _ in }
    requireSendable(timer)
    #expect(Set([timer, timer]).count == 1)
  }
}
