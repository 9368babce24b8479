// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The source that delivers a client's call-outs to a loop.
@Suite struct MultiplexerTests {
  @Test("pending blocks are released when the last user leaves, and the next user's first call-out arrives")
  func leaving() async {
    let log = await elsewhere {
      let log = Log()
      let loop = RunLoop.current
      let source = MultiplexerSource(loop: loop, modes: [.default])
      source.enter()
      func holding() -> @Sendable () -> Void {
        let token = Token(log)
        return { token.touch() }
      }
      source.post(holding())
      source.leave()
      log.write("left")
      source.enter()
      source.post { log.write("next") }
      loop.run(mode: .default, for: .zero)
      source.leave()
      return log.text
    }
    #expect(log == "released left next")
  }

  @Test("an operation that is released without a start leaves nothing in the loop")
  func unstarted() async {
    let results = await elsewhere {
      let (loop, client) = (RunLoop.current, HTTP.Client())
      func run(_ prepare: (HTTP.Operation) -> Void) -> RunLoop.RunResult {
        prepare(client.operation(HTTP.Request("http://a.example/"), inModes: [.default]))
        return loop.run(mode: .default, for: .zero)
      }
      let hooked = run { $0.onProgress { _ in } }
      let both = run { operation in
        operation.onResponse { _ in }
        for _ in 0..<3 { operation.onCompletion { _ in } }
      }
      let operation = client.operation(HTTP.Request("http://a.example/"), inModes: [.default])
      operation.onCompletion { _ in }
      return [hooked, both, withExtendedLifetime(operation) { loop.run(mode: .default, for: .zero) }]
    }
    #expect(results == [.finished, .finished, .timedOut])
  }

  @Test("the progress values of an operation that is released without a start end")
  func unstartedProgress() async {
    let client = HTTP.Client()
    let values = { client.operation(HTTP.Request("http://a.example/"), on: .main).progressValues() }()
    let (count, over) = (Counter(), Latch())
    Task {
      for await _ in values { count.add() }
      over.open()
    }
    await eventually { over.isOpen }
    #expect(count.value == 1)
  }

  @Test("pending blocks are delivered if another user remains")
  func staying() async {
    let log = await elsewhere {
      let log = Log()
      let loop = RunLoop.current
      let source = MultiplexerSource(loop: loop, modes: [.default])
      source.enter()
      source.enter()
      source.post { log.write("first") }
      source.leave()
      loop.run(mode: .default, for: .zero)
      source.leave()
      return log.text
    }
    #expect(log == "first")
  }
}
