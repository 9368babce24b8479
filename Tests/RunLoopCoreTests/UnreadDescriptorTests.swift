// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
@testable import RunLoopCore
import TestSupport
import Testing

private func add(_ source: RunLoop.DescriptorSource) {
  do { try RunLoop.current.add(source, forMode: .default) } catch { exit(9) }
}

/// Descriptors whose sources are called repeatedly.
@Suite("Descriptors without a reader", .timeLimit(.minutes(20)))
struct UnreadDescriptorTests {
  @Test("a descriptor ready in a thousand waits but not read is reported once, and one that is read is not")
  func reported() async {
    await #expect(processExitsWith: .success) {
      onNewThread {
        let loop = RunLoop.current
        var (read, unread): ([Int32], [Int32]) = ([0, 0], [0, 0])
        guard pipe(&read) == 0, pipe(&unread) == 0 else { exit(2) }
        let bytes = [UInt8](repeating: 1, count: 4000)
        guard write(read[1], bytes, bytes.count) == bytes.count else { exit(3) }
        let input = read[0]
        let calls = Box(0)
        let reader = RunLoop.DescriptorSource(descriptor: input, events: .readable) { source, _ in
          var byte: UInt8 = 0
          _ = Glibc.read(input, &byte, 1)
          calls.value += 1
          if calls.value == 4000 { source.invalidate() }
        }
        add(reader)
        loop.run(mode: .default, for: .seconds(1000))
        while calls.value < 4000 { loop.run(mode: .default, for: .seconds(1000)) }
        guard Diagnostic.unread.count == 0 else { exit(4) }

        guard write(unread[1], bytes, 1) == 1 else { exit(5) }
        calls.value = 0
        let sleeper = RunLoop.DescriptorSource(descriptor: unread[0], events: .readable) { _, _ in
          calls.value += 1
          if Diagnostic.unread.count > 0 { loop.stop() }
        }
        add(sleeper)
        loop.runUntilStopped()
        guard Diagnostic.unread.count == 1, calls.value > ReadyStreak.suspicion else { exit(6) }
        let before = calls.value
        while calls.value < before + 5000 { loop.run(mode: .default, for: .zero) }
        guard Diagnostic.unread.count == 1 else { exit(7) }
      }
    }
  }

  @Test("an ignored end of stream is reported, and so is a counter; a source paused in time is not")
  func ends() async {
    await #expect(processExitsWith: .success) {
      onNewThread {
        let loop = RunLoop.current
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { exit(2) }
        close(ends[1])
        let counter = crl_event_create()
        guard counter >= 0, crl_event_write(counter) >= 0 else { exit(8) }
        for (number, descriptor) in [ends[0], counter].enumerated() {
          let source = RunLoop.DescriptorSource(descriptor: descriptor, events: .readable) { _, _ in
            if Diagnostic.unread.count > number { loop.stop() }
          }
          add(source)
          loop.runUntilStopped()
          source.invalidate()
        }
        guard Diagnostic.unread.count == 2 else { exit(3) }
        for _ in 0..<2000 {
          let source = RunLoop.DescriptorSource(descriptor: counter, events: .readable) { source, _ in source.pause() }
          add(source)
          loop.run(mode: .default, for: .zero)
          source.invalidate()
        }
        guard Diagnostic.unread.count == 2 else { exit(4) }
      }
    }
  }

  @Test("a descriptor whose handler reads, and which is full again by then, is not reported")
  func refilled() async {
    await #expect(processExitsWith: .success) {
      onNewThread {
        let loop = RunLoop.current
        var ends: [Int32] = [0, 0]
        let (counter, semaphore) = (crl_event_create(), eventfd(10_000, Int32(EFD_SEMAPHORE)))
        guard pipe(&ends) == 0, counter >= 0, semaphore >= 0 else { exit(2) }
        let (input, output) = (ends[0], ends[1])
        guard write(output, "x", 1) == 1, crl_event_write(counter) >= 0 else { exit(3) }
        let calls = Box(0)
        // A byte is read and written again, a counter is read and set, and a semaphore is decremented by one.
        let sources = [
          RunLoop.DescriptorSource(descriptor: input, events: .readable) { _, _ in
            var byte: UInt8 = 0
            guard Glibc.read(input, &byte, 1) == 1, write(output, &byte, 1) == 1 else { exit(4) }
          },
          RunLoop.DescriptorSource(descriptor: counter, events: .readable) { _, _ in
            var value: UInt64 = 0
            guard Glibc.read(counter, &value, 8) == 8, crl_event_write(counter) >= 0 else { exit(5) }
          },
          RunLoop.DescriptorSource(descriptor: semaphore, events: .readable) { _, _ in
            var value: UInt64 = 0
            guard Glibc.read(semaphore, &value, 8) == 8 else { exit(6) }
            calls.value += 1
            if calls.value == 5000 { loop.stop() }
          },
        ]
        for source in sources { add(source) }
        loop.runUntilStopped()
        guard Diagnostic.unread.count == 0 else { exit(7) }
      }
    }
  }
}
