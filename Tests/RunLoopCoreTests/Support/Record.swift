// SPDX-License-Identifier: Apache-2.0

import TestSupport

@testable import RunLoopCore

/// Runs `body` on virtual time with an observer of all stages of a mode, and returns the log.
func record(
  observing mode: RunLoop.Mode? = .default, _ body: @escaping @Sendable (SteppedTime, RunLoop, Log) -> Void
) -> String {
  onVirtualTime { time, loop in
    let log = Log()
    if let mode { loop.observe(log, mode: mode) }
    body(time, loop, log)
    return log.text
  }
}

extension RunLoop {
  /// Runs one mode, by default for one second, and logs the result.
  func run(
    _ log: Log, mode: Mode = .default, for timeout: Duration = .seconds(1), returnAfterSourceHandled: Bool = false
  ) {
    log.write("\(run(mode: mode, for: timeout, returnAfterSourceHandled: returnAfterSourceHandled))")
  }

  /// Runs one mode inside a call-out, and logs the result in brackets.
  func nest(_ log: Log, mode: Mode = .default, for timeout: Duration = .zero) {
    log.write("[")
    run(log, mode: mode, for: timeout)
    log.write("]")
  }

  @discardableResult
  func port(messages: Int, mode: Mode = .default, _ body: @escaping @Sendable () -> Void) -> Port {
    let port = Port { _, _ in body() }
    add(port, forMode: mode)
    for _ in 0..<messages { try? port.send(Port.Message()) }
    return port
  }
}
