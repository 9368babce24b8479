// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

/// Records in its deinitializer whether the calling thread is an executor's.
private final class Witness: Sendable {
  let name: String
  let executor: @Sendable () -> ResidentThread?
  let seen: Box<[String]>

  init(_ name: String, _ seen: Box<[String]>, _ executor: @escaping @Sendable () -> ResidentThread?) {
    (self.name, self.seen, self.executor) = (name, seen, executor)
  }

  deinit {
    let isIsolated = executor()?.isIsolatingCurrentContext() ?? false
    seen.update { $0.append("\(name) \(isIsolated)") }
  }
}

/// An actor whose deinitializer runs on its thread.
private actor Guarded {
  let thread: ResidentThread
  let seen: Box<[Int32]>
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  init(_ thread: ResidentThread, _ seen: Box<[Int32]>) { (self.thread, self.seen) = (thread, seen) }

  isolated deinit { seen.update { $0.append(RunLoop.callingThreadID) } }
}

@Suite("An executor at its thread's end", .timeLimit(.minutes(20)))
struct ExecutorEndTests {
  @Test("a thread belongs to its executor before its loop exists and while its objects are released")
  func isolation() async throws {
    let seen = Box<[String]>([])
    let handle = Box<ResidentThread?>(nil)
    let thread = try ResidentThread(name: "ends")
    handle.value = thread
    let executor: @Sendable () -> ResidentThread? = { handle.value }
    try thread.performAndWait {
      _ = Thread.current.attachment { Witness("attachment", seen, executor) }
      var key = pthread_key_t()
      pthread_key_create(&key) { value in value.map { Unmanaged<Witness>.fromOpaque($0).release() } }
      pthread_setspecific(key, Unmanaged.passRetained(Witness("destructor", seen, executor)).toOpaque())
    }
    thread.stop()
    _ = await thread.finished()
    #expect(seen.value == ["attachment true", "destructor true"])
    #expect(thread.isIsolatingCurrentContext() == false)
    handle.value = nil
  }

  @Test("an isolated deinitializer runs on the thread if the thread releases the object last")
  func isolatedDeinit() async throws {
    let seen = Box<[Int32]>([])
    let thread = try ResidentThread(name: "ends")
    let id = try thread.performAndWait {
      _ = Thread.current.attachment { Guarded(thread, seen) }
      return RunLoop.callingThreadID
    }
    thread.stop()
    _ = await thread.finished()
    #expect(seen.value == [id])
  }

  @Test("another thread is never the executor's, before or after the end")
  func others() async throws {
    let thread = try ResidentThread(name: "ends")
    #expect(thread.isIsolatingCurrentContext() == false)
    let isIsolated = try thread.performAndWait { thread.isIsolatingCurrentContext() }
    #expect(isIsolated == true)
    thread.stop()
    _ = await thread.finished()
    let others = (0..<50).map { _ in startThread { thread.isIsolatingCurrentContext() ?? true } }
    #expect(others.allSatisfy { !$0.result() })
  }
}
