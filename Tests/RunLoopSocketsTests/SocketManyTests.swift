// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Many sockets", .timeLimit(.minutes(20)))
struct SocketManyTests {
  @Test("a thousand connections echo, close, and leave no descriptor behind")
  func thousand() async {
    // In its own process, in which nothing else opens a descriptor.
    await #expect(processExitsWith: .success) {
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      _ = RunLoop.main
      let before = DescriptorCensus()
      for _ in 0..<2 { #expect(echoThousand() == "1000 1000 stopped") }
      let after = DescriptorCensus()
      #expect(before.isFollowed(by: after), "\(before), then \(after)")
    }
  }
}

private func echoThousand() -> String {
  onSocketLoop { loop, log in
    let count = 1000
    let (echoes, ends) = (Box(0), Box(0))
    let listener = try loop.listen { socket, event in
      if case .received(let bytes) = event { _ = try? socket.write(bytes) }
      if case .ended = event { socket.shutDown(.write) }
      if case .closed(nil) = event { ends.value += 1 }
      if ends.value == 2 * count { loop.stop() }
    }
    for index in 0..<count {
      try loop.connect(listener.address) { socket, event in
        switch event {
        case .connected: _ = try? socket.write("\(index)")
        case .received(let bytes):
          if text(bytes) == "\(index)" { echoes.value += 1 }
          socket.shutDown(.write)
        case .closed(nil): ends.value += 1
        default: break
        }
        if ends.value == 2 * count { loop.stop() }
      }
    }
    let result = loop.runUntilStopped()
    log.write("\(echoes.value) \(ends.value / 2) \(result)")
  }
}
