// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

/// Releasing the last reference to an item can run arbitrary code.
///
/// Each test runs in its own process, because an exclusivity violation ends it.
@Suite("Code that runs when an item is released", .timeLimit(.minutes(20)))
struct CallOutReleaseTests {
  @Test("a due timer that an earlier one has removed runs the loop as it is released", .rule(.r94, .r108, .m10))
  func timer() async {
    await #expect(processExitsWith: .success) {
      let log = onVirtualTime { _, loop in
        let log = Log()
        let only = Box<Timer?>(nil)
        loop.after(.milliseconds(5)) { _ in
          log.write("A")
          if let timer = only.value { loop.remove(timer, forMode: .default) }
          only.value = nil
        }
        only.value = { [runner = runner(loop, log)] in loop.after(.milliseconds(5)) { _ in runner.touch() } }()
        loop.add(Timer(at: 1) { _ in log.write("T") }, forMode: "inner")
        log.write("\(loop.run(mode: .default, for: .seconds(1)))")
        return log.text
      }
      precondition(log == "A deinit T finished", log)
    }
  }

  @Test("a signalled source that an earlier one has removed runs the loop as it is released", .rule(.r66, .r108, .m10))
  func source() async {
    await #expect(processExitsWith: .success) {
      let log = onVirtualTime { _, loop in
        let log = Log()
        let only = Box<RunLoop.Source?>(nil)
        loop.signalled(order: -1) {
          log.write("A")
          if let source = only.value { loop.remove(source, forMode: .default) }
          only.value = nil
        }.signal()
        only.value = { [runner = runner(loop, log)] in loop.signalled { runner.touch() } }()
        loop.signalled(mode: "inner") { log.write("S0") }
        log.write("\(loop.run(mode: .default, for: .zero))")
        return log.text
      }
      precondition(log == "A deinit S0 timedOut", log)
    }
  }

  @Test("a port removed by its own message may run the loop while it is released", .rule(.r108, .m10))
  func port() async {
    await #expect(processExitsWith: .success) {
      let log = onVirtualTime { _, loop in
        let log = Log()
        do {
          let runner = runner(loop, log)
          let port = Port { port, _ in
            log.write("P")
            loop.remove(port, forMode: .default)
            runner.touch()
          }
          try? port.send(.init())
          loop.add(port, forMode: .default)
        }
        let inner = Port { _, _ in log.write("inner") }
        try? inner.send(.init())
        loop.add(inner, forMode: "inner")
        log.write("\(loop.run(mode: .default, for: .seconds(1)))")
        return log.text
      }
      precondition(log == "P deinit inner finished", log)
    }
  }

  @Test(
    "a descriptor source removed by its own handler may run the loop while it is released, before the next one",
    .rule(.r108, .m10, .m19))
  func descriptor() async {
    await #expect(processExitsWith: .success) {
      let log = onVirtualTime { _, loop in
        let log = Log()
        guard let first = try? RawPipe(), let second = try? RawPipe() else { return "no pipes" }
        do {
          let runner = Token {
            log.write("deinit [")
            loop.run(mode: .default, for: .zero)
            log.write("]")
          }
          loop.watch(first.reading) { source, _ in
            log.write("first")
            loop.remove(source, forMode: .default)
            runner.touch()
          }
        }
        loop.watch(second.reading) { _, _ in
          log.write("second")
          second.read()
        }
        first.write()
        second.write()
        log.write("\(loop.run(mode: .default, for: .seconds(1)))")
        return log.text
      }
      precondition(log == "first deinit [ second ] timedOut", log)
    }
  }
}

/// Runs a loop in another mode when the last reference is released.
private func runner(_ loop: RunLoop, _ log: Log) -> Token {
  Token {
    log.write("deinit")
    loop.run(mode: "inner", for: .zero)
  }
}
