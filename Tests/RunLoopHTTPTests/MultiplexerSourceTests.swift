// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The source that delivers the call-outs of several users to a loop.
@Suite struct MultiplexerSourceTests {
  @Test("blocks wait for the loop, and those of absent users are neither called nor kept")
  func blocks() async {
    let text = await elsewhere {
      let (loop, log, mode) = (RunLoop.current, Log(), RunLoop.Mode("blocks"))
      let source = MultiplexerSource(loop: loop, modes: [mode])
      source.post { log.write("early") }
      source.enter()
      source.post { log.write("first") }
      source.post { log.write("second") }
      log.write("posted")
      loop.run(mode: mode, for: .zero)
      weak var held: Box<Int>?
      do {
        let made = Box(0)
        held = made
        source.post { log.write("late \(made.value)") }
      }
      source.leave()
      log.write("\(held == nil) \(loop.run(mode: mode, for: .zero))")
      // After this, nothing prevents the next user from signalling the source.
      source.enter()
      source.post { log.write("again") }
      loop.run(mode: mode, for: .zero)
      source.leave()
      return log.text
    }
    #expect(text == "posted first second true finished again")
  }

  @Test("users registered before the source is in the loop and dropped by others do not affect the rest")
  func halves() async {
    let text = await elsewhere {
      let (loop, log, mode) = (RunLoop.current, Log(), RunLoop.Mode("halves"))
      let source = MultiplexerSource(loop: loop, modes: [mode])
      source.noteUser()
      source.post { log.write("noted") }
      // Another thread drops that user, and settles first.
      source.dropUser()
      source.settle()
      source.settle()
      source.noteUser()
      source.post { log.write("waits") }
      log.write("\(loop.run(mode: mode, for: .zero))")
      source.settle()
      loop.run(mode: mode, for: .zero)
      source.leave()
      return log.text
    }
    #expect(text == "finished waits")
  }

  @Test("after the loop's thread has ended, blocks are called where they are posted")
  func endedLoop() async throws {
    let log = Log()
    let thread = try ResidentThread(name: "short")
    let source = try await thread.run {
      let source = MultiplexerSource(loop: .current, modes: [.tracking])
      source.enter()
      source.post { log.write("waited") }
      return source
    }
    thread.stop()
    _ = await thread.finished()
    #expect(log.text == "waited")
    source.post { log.write("here") }
    #expect(log.text == "waited here")
    source.leave()
  }
}
