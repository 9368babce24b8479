// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import RunLoopKit
import XCTest

// Assertions from Foundation's own tests about types that work with run loops, run with our run loop.

/// Long enough that only a hung test reaches it.
private let limit: TimeInterval = 600

/// Runs the main loop until a condition holds; returns false if the limit passes first.
private func runs(until condition: () -> Bool) -> Bool {
  let end = Date(timeIntervalSinceNow: limit)
  while !condition(), Date() < end { RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01)) }
  return condition()
}

/// Entries that closures append from several threads.
private final class Entries: @unchecked Sendable {
  // Sendable: the lock guards them.
  private let lock = NSLock()
  private var entries: [String] = []

  func add(_ entry: String) { lock.withLock { entries.append(entry) } }
  var all: [String] { lock.withLock { entries } }
}

/// Operation queues while our loop runs.
final class PeerOperationTests: XCTestCase {
  // R110
  func testTheMainQueuesOperationsRunOnTheMainThreadInARunOfOurs() {
    let entries = Entries()
    DispatchQueue.global().async {
      OperationQueue.main.addOperation {
        entries.add("main thread \(Thread.isMainThread), queue \(OperationQueue.current === OperationQueue.main)")
      }
    }
    XCTAssert(runs { !entries.all.isEmpty })
    XCTAssertEqual(entries.all, ["main thread true, queue true"])
    XCTAssertEqual(OperationQueue.main.maxConcurrentOperationCount, 1)
  }

  // R110
  func testOperationsOfTheMainQueueWaitForWhatTheyDependOnInAnotherQueue() {
    let entries = Entries()
    let background = OperationQueue()
    background.isSuspended = true
    let first = BlockOperation { entries.add("first on main \(Thread.isMainThread)") }
    let second = BlockOperation { entries.add("second on main \(Thread.isMainThread)") }
    second.addDependency(first)
    OperationQueue.main.addOperation(second)
    background.addOperation(first)
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      entries.add("timer")
      background.isSuspended = false
    }
    XCTAssert(runs { entries.all.count == 3 })
    XCTAssertEqual(entries.all, ["timer", "first on main false", "second on main true"])
    XCTAssertFalse(timer.isValid)
  }

  // R110
  func testACancelledOperationOfTheMainQueueDoesNotRun() {
    let entries = Entries()
    let cancelled = BlockOperation { entries.add("cancelled") }
    let other = BlockOperation { entries.add("other") }
    for operation in [cancelled, other] { OperationQueue.main.addOperation(operation) }
    cancelled.cancel()
    XCTAssert(runs { other.isFinished && cancelled.isFinished })
    XCTAssertEqual(entries.all, ["other"])
  }

  // R110
  func testOperationsOfTheMainQueueAndTimersOfOursTakeTurns() {
    let entries = Entries()
    for number in 1...3 { OperationQueue.main.addOperation { entries.add("\(number)") } }
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in entries.add("T") }
    XCTAssert(runs { entries.all.filter { $0 != "T" }.count == 3 && entries.all.contains("T") })
    timer.invalidate()
    XCTAssertEqual(entries.all.filter { $0 != "T" }, ["1", "2", "3"])
  }
}

/// Child processes while our loop runs.
final class PeerProcessTests: XCTestCase {
  private func shell(_ command: String) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", command]
    return process
  }

  // M32
  func testStatusAndReasonAreKnownWhenTheWaitIsOver() throws {
    for status in [0, 1, 100] as [Int32] {
      let process = shell("exit \(status)")
      try process.run()
      process.waitUntilExit()
      XCTAssertEqual(process.terminationStatus, status)
      XCTAssertEqual(process.terminationReason, .exit)
      XCTAssertFalse(process.isRunning)
    }
    let killed = shell("kill -TERM $$")
    try killed.run()
    killed.waitUntilExit()
    XCTAssertEqual(killed.terminationReason, .uncaughtSignal)
    XCTAssertEqual(killed.terminationStatus, SIGTERM)
  }

  // M32
  func testATimerOfOursTerminatesTheProcessThatIsWaitedFor() throws {
    let process = shell("exec sleep 1000")
    try process.run()
    let pid = process.processIdentifier
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in kill(pid, SIGTERM) }
    process.waitUntilExit()
    XCTAssertEqual(process.terminationReason, .uncaughtSignal)
  }

  // M32
  func testTheTerminationHandlerIsCalledAndItsBlockRunsInARunOfOurs() throws {
    let entries = Entries()
    let process = shell("exit 7")
    process.terminationHandler = { process in
      let status = process.terminationStatus
      RunLoop.main.perform { entries.add("\(status) on main \(Thread.isMainThread)") }
    }
    try process.run()
    XCTAssert(runs { !entries.all.isEmpty })
    XCTAssertEqual(entries.all, ["7 on main true"])
  }

  // M32
  func testSeveralProcessesAreWaitedForOneAfterTheOther() throws {
    let processes = (1...3).map { shell("exit \($0)") }
    for process in processes { try process.run() }
    for process in processes.reversed() { process.waitUntilExit() }
    XCTAssertEqual(processes.map(\.terminationStatus), [1, 2, 3])
  }

  // M32
  func testAllOutputIsReadInRunsOfOurs() throws {
    let entries = Entries()
    let process = shell("echo one; echo two >&2; cat")
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let token = NotificationCenter.default.addObserver(
      forName: .NSFileHandleReadToEndOfFileCompletion, object: output.fileHandleForReading, queue: nil
    ) { notification in
      let data = notification.userInfo?[NSFileHandleNotificationDataItem] as? Data
      entries.add(String(decoding: data ?? Data(), as: UTF8.self))
    }
    output.fileHandleForReading.readToEndOfFileInBackgroundAndNotify()
    input.fileHandleForWriting.write(Data("three\n".utf8))
    try input.fileHandleForWriting.close()
    XCTAssert(runs { !entries.all.isEmpty })
    process.waitUntilExit()
    NotificationCenter.default.removeObserver(token)
    XCTAssertEqual(entries.all, ["one\ntwo\nthree\n"])
    XCTAssertEqual(process.terminationStatus, 0)
  }
}

/// File handles, streams and threads while our loop runs.
final class PeerHandleTests: XCTestCase {
  /// Kept alive: Foundation calls a readability handler once more after its removal, and reads the handle then.
  private static let pipe = Pipe()

  // M32
  func testDataThatAreWaitedForAreNotifiedInARunOfOurs() {
    let entries = Entries()
    let pipe = Pipe()
    let handle = pipe.fileHandleForReading
    let token = NotificationCenter.default.addObserver(
      forName: .NSFileHandleDataAvailable, object: handle, queue: nil
    ) { _ in entries.add("available") }
    handle.waitForDataInBackgroundAndNotify()
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      pipe.fileHandleForWriting.write(Data("hello".utf8))
    }
    XCTAssert(runs { !entries.all.isEmpty })
    NotificationCenter.default.removeObserver(token)
    XCTAssertEqual(handle.availableData, Data("hello".utf8))
  }

  // M32
  func testAReadabilityHandlerPostsToOurs() {
    let entries = Entries()
    let pipe = Self.pipe
    pipe.fileHandleForReading.readabilityHandler = { handle in
      let text = String(decoding: handle.availableData, as: UTF8.self)
      RunLoop.main.perform { entries.add(text) }
    }
    pipe.fileHandleForWriting.write(Data("hello".utf8))
    XCTAssert(runs { !entries.all.isEmpty })
    pipe.fileHandleForReading.readabilityHandler = nil
    XCTAssertEqual(entries.all, ["hello"])
  }

  func testAStreamToABufferIsFullAndOneFromDataIsOver() {
    var bytes = [UInt8](repeating: 0, count: 4)
    bytes.withUnsafeMutableBufferPointer { buffer in
      guard let address = buffer.baseAddress else { return XCTFail("no buffer") }
      let output = OutputStream(toBuffer: address, capacity: buffer.count)
      output.open()
      XCTAssertTrue(output.hasSpaceAvailable)
      XCTAssertEqual(output.write(Array("abcd".utf8), maxLength: 4), 4)
      XCTAssertFalse(output.hasSpaceAvailable)
      output.close()
      XCTAssertEqual(output.streamStatus, .closed)
    }
    XCTAssertEqual(String(decoding: bytes, as: UTF8.self), "abcd")
    let input = InputStream(data: Data(bytes))
    XCTAssertEqual(input.streamStatus, .notOpen)
    input.open()
    XCTAssertTrue(input.hasBytesAvailable)
    XCTAssertEqual(input.read(&bytes, maxLength: 4), 4)
    XCTAssertFalse(input.hasBytesAvailable)
    XCTAssertEqual(input.streamStatus, .atEnd)
    input.close()
  }

  func testTheMainThreadIsNamedAndSeenFromEverywhere() {
    let before = Thread.main.name
    Thread.current.name = "a name"
    XCTAssertEqual(Thread.main.name, "a name")
    let entries = Entries()
    let thread = Thread {
      entries.add("\(Thread.isMainThread) \(Thread.main.name ?? "") \(Thread.current.name ?? "")")
    }
    thread.name = "another"
    thread.start()
    XCTAssert(runs { thread.isFinished })
    XCTAssertEqual(entries.all, ["false a name another"])
    Thread.current.name = before
    XCTAssertTrue(Thread.current.isEqual(Thread.main))
    XCTAssertFalse(Thread.callStackSymbols.isEmpty)
    XCTAssertEqual(Thread.callStackReturnAddresses.isEmpty, false)
  }
}
