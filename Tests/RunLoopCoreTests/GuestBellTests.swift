// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("The bell of a loop that another one sleeps for", .timeLimit(.minutes(20)))
struct GuestBellTests {
  @Test("a wake-up between the last look for work and the look at descriptors is not lost", .rule(.m2, .m28))
  func racingWakeUp() throws {
    let pipe = try RawPipe()
    let opened = onNewThread { () -> Int? in
      let loop = RunLoop.current
      loop.keepAlive()
      let watched = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in }
      guard (try? loop.add(watched, forMode: .default)) != nil else { return nil }
      let gate = RacingGate { loop.wakeUp() }
      guard let guest = RunLoop.Guest(automaticAt: gate, mode: .default) else { return nil }
      guest.service()
      let opened = gate.openCount
      guest.invalidate()
      watched.invalidate()
      return opened
    }
    // Once when the guest was created, and once for the wake-up.
    #expect(opened == 2)
  }

  @Test("a guest whose loop was woken in a set of its own before is quiet when it has nothing to do", .rule(.m28))
  func staleCount() throws {
    let pipe = try RawPipe()
    let isReadable = onNewThread { () -> Bool? in
      let loop = RunLoop.current
      loop.keepAlive()
      let watched = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in }
      guard (try? loop.add(watched, forMode: .default)) != nil else { return nil }
      let poster = startThread {
        loop.awaitSleep(.epoll)
        loop.perform { loop.stop() }
      }
      loop.run(mode: .default, for: .unlimited)
      poster.result()
      watched.invalidate()
      guard let guest = try? RunLoop.Guest() else { return nil }
      for _ in 0..<4 { guest.service() }
      var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
      let answer = poll(&entry, 1, 0)
      guest.invalidate()
      return answer != 0
    }
    #expect(isReadable == false)
  }
}

/// A gate at which another thread acts just after the loop's last check for work.
private final class RacingGate: SleepGate, @unchecked Sendable {
  // Sendable: used on one thread.
  private var act: (() -> Void)?
  private(set) var openCount = 0
  var isRetired = false
  let isWatchedByEdge = true
  let wakeNumber: Int32 = -1
  let wasOpenedByEvent = false

  init(_ act: @escaping () -> Void) { self.act = act }

  func open() { openCount += 1 }

  func close() {}

  func watch(_ descriptor: OwnedDescriptor?, until deadline: Tick) {
    guard descriptor != nil else { return }
    act.take()?()
  }
}
