// SPDX-License-Identifier: Apache-2.0

// A C library whose handle belongs to one thread, wrapped in an actor isolated to a resident thread. The program
// itself runs on the main loop.

import CStore
import RunLoopCore
import RunLoopThreads

/// The store, opened, used and closed on one thread.
actor Database {
  private nonisolated let thread: ResidentThread
  private var store: OpaquePointer?

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  enum Failure: Error {
    case cannotOpen
    case wrongThread
    case isClosed
  }

  init() throws {
    thread = try ResidentThread(name: "database")
  }

  func open() throws {
    guard let opened = cstore_open() else { throw Failure.cannotOpen }
    store = opened
  }

  func insert(_ value: Int32) throws {
    guard let store else { throw Failure.isClosed }
    guard cstore_insert(store, value) == 0 else { throw Failure.wrongThread }
  }

  func sum() throws -> Int {
    guard let store else { throw Failure.isClosed }
    let sum = cstore_sum(store)
    guard sum >= 0 else { throw Failure.wrongThread }
    return sum
  }

  func close() throws {
    guard let store, cstore_close(store) == 0 else { throw Failure.wrongThread }
    self.store = nil
  }
}

MainLoop.run {
  let database = try Database()
  try await database.open()
  // From many concurrent tasks on any threads: each entry is inserted on the database's own thread.
  try await withThrowingTaskGroup(of: Void.self) { group in
    for value in 1...1000 { group.addTask { try await database.insert(Int32(value)) } }
    try await group.waitForAll()
  }
  print("\(String(cString: cstore_library())): the sum of 1 to 1000 is \(try await database.sum())")
  MainActor.assertIsolated()
  print(
    "on \(Thread.current.isMainThread ? "the main thread" : "another thread"), in a run of the main loop: "
      + "\(RunLoop.main.currentMode == .default)")
  try await database.close()
}
