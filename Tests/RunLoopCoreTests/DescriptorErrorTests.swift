// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Descriptors that cannot be watched, or are closed", .timeLimit(.minutes(20)))
struct DescriptorErrorTests {
  /// Adds a source for a descriptor and returns the outcome.
  private func logOfAdd(_ descriptor: Int32, mode: RunLoop.Mode = .default) -> (log: String, error: RunLoopError?) {
    let error = Box<RunLoopError?>(nil)
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.DescriptorSource(descriptor: descriptor, events: .readable) { _, _ in log.write("D") }
      error.value = failure { () throws(RunLoopError) in try loop.add(source, forMode: mode) }
      log.write("\(loop.contains(source, forMode: .default)) \(loop.contains(source, forMode: .common))")
      log.write("\(loop.statistics.rejectionCount) \(loop.pollSet() == nil) \(source.isValid)")
      loop.run(log)
    }
    return (log, error.value)
  }

  @Test(
    "a regular file is rejected, and nothing is added", .rule(.r81, .m7, .m21),
    arguments: [RunLoop.Mode.default, .common])
  func regularFile(mode: RunLoop.Mode) throws {
    let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    let (log, error) = logOfAdd(file, mode: mode)
    #expect(error == .cannotWatch(descriptor: file, SystemError(call: "epoll_ctl", number: EPERM)))
    #expect(log == "false false 1 true true finished")
  }

  @Test(
    "a number that is no descriptor is rejected, and nothing is added", .rule(.r81, .m7, .m21),
    arguments: [-1, .min, .max])
  func noDescriptor(number: Int32) {
    let (log, error) = logOfAdd(number)
    #expect(error == .cannotWatch(descriptor: number, SystemError(call: "epoll_ctl", number: EBADF)))
    #expect(log == "false false 1 true true finished")
  }

  @Test("a descriptor that was closed is rejected, and nothing is added", .rule(.r81, .m7, .m21))
  func closed() throws {
    let pipe = try RawPipe()
    let number = pipe.duplicateReading()
    close(number)
    let (log, error) = logOfAdd(number)
    #expect(error == .cannotWatch(descriptor: number, SystemError(call: "epoll_ctl", number: EBADF)))
    #expect(log == "false false 1 true true finished")
  }

  @Test("a descriptor error names the descriptor and the reason", .rule(.m7))
  func description() {
    let error = RunLoopError.cannotWatch(descriptor: -1, SystemError(call: "epoll_ctl", number: EBADF))
    #expect("\(error)" == "descriptor -1 cannot be watched: epoll_ctl: Bad file descriptor (9)")
  }

  @Test("rejecting a descriptor does not affect those already watched", .rule(.r81, .m7))
  func besideOthers() throws {
    let pipe = try RawPipe()
    let log = record { _, loop, log in
      pipe.write()
      loop.watch(pipe.reading) { _, _ in log.write("D\(pipe.read())") }
      let rejected = RunLoop.DescriptorSource(descriptor: -1, events: .readable) { _, _ in }
      try? loop.add(rejected, forMode: .default)
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D[7] BT BS BW AW X timedOut")
  }

  @Test("a mode does not become common when a common source's descriptor was closed", .rule(.m7))
  func closedBeforeCommon() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let number = pipes[1].duplicateReading()
    let log = record(observing: nil) { _, loop, log in
      let good = loop.watch(pipes[0].reading, mode: .common)
      let bad = loop.watch(number, mode: .common)
      close(number)
      let error = failure { () throws(RunLoopError) in try loop.addCommonMode("a") }
      log.write("\(error == .cannotWatch(descriptor: number, SystemError(call: "epoll_ctl", number: EBADF)))")
      log.write("\(loop.contains(good, forMode: "a")) \(loop.contains(bad, forMode: "a"))")
      bad.invalidate()
      do { try loop.addCommonMode("a") } catch { log.write("\(error)") }
      log.write("\(loop.contains(good, forMode: "a"))")
    }
    #expect(log == "true false false true")
  }

  @Test("a reused descriptor number is watched for its new file", .rule(.m7))
  func reused() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let number = pipes[0].duplicateReading()
    defer { close(number) }
    let log = record(observing: nil) { _, loop, log in
      loop.watch(number) { _, _ in }
      pipes[0].closeReading()
      dup2(pipes[1].reading, number)
      loop.watch(number) { _, _ in
        log.write("D\(readBytes(number))")
        loop.stop()
      }
      pipes[1].write([9])
      loop.run(log)
    }
    #expect(log == "D[9] stopped")
  }

  @Test("an invalidated source's reused descriptor number is watched for its new file", .rule(.m7))
  func reusedAfterInvalidation() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let number = pipes[0].duplicateReading()
    defer { close(number) }
    let log = record { _, loop, log in
      loop.keepAlive()
      let first = loop.watch(number) { _, _ in log.write("old") }
      pipes[0].closeReading()
      dup2(pipes[1].reading, number)
      first.invalidate()
      loop.watch(number) { _, _ in log.write("D\(readBytes(number))") }
      pipes[1].write([9])
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D[9] BT BS BW AW X timedOut")
  }

  @Test("a reused descriptor number does not refer to the old file, even if that still exists", .rule(.m7))
  func reusedWhileOldLives() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let number = pipes[0].duplicateReading()
    defer { close(number) }
    let log = record(observing: nil) { time, loop, log in
      stop(loop, log, afterPasses: 20)
      loop.watch(number) { _, _ in }
      dup2(pipes[1].reading, number)
      loop.watch(number) { _, _ in
        time.stamp(log, "D")
        log.write("\(readBytes(number))")
      }
      pipes[0].write([1])
      time.at(.milliseconds(20)) { pipes[1].write([2]) }
      loop.run(log)
    }
    #expect(log == "D20 [2] timedOut")
  }

  @Test("a source whose descriptor was closed can be removed, and others are served", .rule(.m7))
  func closedBeforeRemoval() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let log = record { _, loop, log in
      let first = loop.watch(pipes[0].reading) { _, _ in log.write("old") }
      loop.watch(pipes[1].reading) { _, _ in log.write("D\(pipes[1].read())") }
      pipes[0].closeReading()
      loop.remove(first, forMode: .default)
      pipes[1].write()
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW D[7] BT BS BW AW X timedOut")
  }

  @Test("a closed descriptor whose file lives on does not make the loop spin", .rule(.m7, .m20))
  func strayEvents() throws {
    let pipes = [try RawPipe(), try RawPipe()]
    let number = pipes[0].duplicateReading()
    let log = record(observing: nil) { time, loop, log in
      pipes[0].write()
      let passes = stop(loop, log, afterPasses: 20)
      let first = loop.watch(number) { _, _ in log.write("old") }
      loop.watch(pipes[1].reading) { _, _ in
        time.stamp(log, "D")
        pipes[1].read()
      }
      close(number)
      first.invalidate()
      time.at(.milliseconds(20)) { pipes[1].write() }
      loop.run(log)
      // One pass for each of the two pipes, and the last one.
      log.write("\(passes.count(of: "BT") <= 3)")
    }
    #expect(log == "D20 timedOut true")
  }

  @Test("a closed number that now belongs to a regular file does not make the loop spin", .rule(.m7, .m20))
  func strayEventsBesideAFile() throws {
    let pipes = [try RawPipe(), try RawPipe(), try RawPipe()]
    let numbers = [pipes[0].duplicateReading(), pipes[1].duplicateReading()]
    let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
    defer { for number in [numbers[1], file] { close(number) } }
    let log = record(observing: nil) { time, loop, log in
      pipes[0].write()
      let passes = stop(loop, log, afterPasses: 20)
      let first = loop.watch(numbers[0]) { _, _ in log.write("old") }
      loop.watch(numbers[1]) { _, _ in log.write("file") }
      loop.watch(pipes[2].reading) { _, _ in
        time.stamp(log, "D")
        pipes[2].read()
      }
      dup2(file, numbers[1])
      close(numbers[0])
      first.invalidate()
      time.at(.milliseconds(20)) { pipes[2].write() }
      loop.run(log)
      log.write("\(passes.count(of: "BT") <= 3)")
    }
    #expect(log == "D20 timedOut true")
  }

  /// Ends a run that spins, and counts its passes.
  @discardableResult
  private func stop(_ loop: RunLoop, _ log: Log, afterPasses limit: Int) -> Log {
    let passes = Log()
    loop.add(
      RunLoop.Observer(activities: .beforeTimers) { _, _ in
        passes.write("BT")
        guard passes.count(of: "BT") == limit else { return }
        log.write("spins")
        loop.stop()
      }, forMode: .default)
    return passes
  }
}
