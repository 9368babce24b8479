// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

// The streams of these tests are nonisolated(unsafe) because they are used only on the thread of their loop, or while
// it waits.

@Suite("Streams of a program's own, over memory", .timeLimit(.minutes(20)))
struct WatchedStreamMemoryTests {
  @Test("a bound pair passes data through a smaller buffer, in turns")
  func boundPair() {
    let log = Log()
    onVirtualTime { _, loop in
      nonisolated(unsafe) let (input, output) = boundPair(capacity: 4)
      let text = Box("hello world")
      let reader = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(3, log) } }
      let writer = StreamListener(log) { stream, event in
        guard event == .hasSpaceAvailable else { return }
        let count = (stream as? OutputStream)?.write(Array(text.value.utf8), maxLength: text.value.utf8.count) ?? 0
        text.update { $0.removeFirst(count) }
        log.write("+\(count)")
        if text.value.isEmpty { stream.close() }
      }
      (input.delegate, output.delegate) = (reader, writer)
      for stream in [input, output] as [Stream] {
        stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      for stream in [input, output] as [Stream] { stream.close() }
    }
    #expect(
      log.text
        == "opened opened space +4 bytes hel bytes l space +4 bytes o w bytes o space +3 bytes rld end finished")
  }

  @Test("data read and written outside the delegates reaches the other end")
  func boundPairOutside() {
    let log = Log()
    onVirtualTime { time, loop in
      nonisolated(unsafe) let (input, output) = boundPair(capacity: 2)
      let (reader, writer) = (StreamListener(log), StreamListener(log))
      (input.delegate, output.delegate) = (reader, writer)
      for stream in [input, output] as [Stream] {
        stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      // Full until the other end reads.
      time.at(.milliseconds(10)) {
        time.stamp(log, "@")
        output.write("abc", log)
      }
      time.at(.milliseconds(20)) {
        time.stamp(log, "@")
        input.read(1, log)
      }
      time.at(.milliseconds(30)) {
        time.stamp(log, "@")
        output.close()
      }
      time.at(.milliseconds(40)) {
        time.stamp(log, "@")
        input.read(1, log)
      }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
    }
    #expect(log.text == "opened opened space @10 2 bytes @20 a bytes space @30 @40 b end finished")
  }

  @Test("a report without a change calls no delegate and handles no source")
  func emptyReport() {
    let log = Log()
    onVirtualTime { time, loop in
      nonisolated(unsafe) let stream = OwnInput()
      let listener = StreamListener(log)
      stream.delegate = listener
      stream.open()
      stream.reportChange()
      stream.schedule(in: loop, forMode: .default)
      for milliseconds in [10, 20] { time.at(.milliseconds(milliseconds)) { stream.reportChange() } }
      for _ in 1...2 {
        log.write("\(loop.run(mode: .default, for: .milliseconds(30), returnAfterSourceHandled: true))")
      }
      stream.close()
    }
    #expect(log.text == "opened handledSource timedOut")
  }

  @Test("another thread's report wakes a loop in an unlimited sleep")
  func otherThread() async throws {
    let log = Log()
    let thread = try ResidentThread()
    nonisolated(unsafe) let stream = OwnInput()
    await withCheckedContinuation { continuation in
      let listener = StreamListener(log) { stream, event in
        guard event == .hasBytesAvailable else { return }
        stream.read(8, log)
        (stream as? OwnInput)?.onClose?()
      }
      stream.delegate = listener
      stream.onClose = {
        withExtendedLifetime(listener) { continuation.resume() }
      }
      stream.open()
      stream.schedule(in: thread.runLoop, forMode: .default)
      waitUntil { log.text == "opened" && thread.runLoop.isWaiting }
      stream.buffer = Array("hi".utf8)
      stream.reportChange()
    }
    #expect(log.text == "opened bytes hi")
    stream.onClose = nil
    thread.stop()
    try thread.join()
  }

  /// Creates an input stream that receives what the output stream writes, with a limited capacity.
  private func boundPair(capacity: Int) -> (input: OwnInput, output: OwnOutput) {
    let (input, output) = (OwnInput(), OwnOutput.over(nil))
    output.room = capacity
    output.onWrite = { [unowned input] bytes in
      input.buffer += bytes
      input.reportChange()
    }
    input.onRead = { [unowned input, unowned output] count in
      output.room += count
      output.reportChange()
      if output.status == .closed, input.buffer.isEmpty { input.status = .atEnd }
    }
    return (input, output)
  }
}
