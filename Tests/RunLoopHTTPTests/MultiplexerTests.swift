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
