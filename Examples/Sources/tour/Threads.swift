// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopThreads

@MainActor func thread() async throws -> String {
  let worker = try ResidentThread(name: "worker")
  // Three tasks of Swift's own threads hand over work, and wait for its value.
  let names = try await withThrowingTaskGroup(of: String.self) { group in
    for number in 1...3 {
      group.addTask { try await worker.run { "\(number) on \"\(Thread.current.name ?? "")\"" } }
    }
    var names: [String] = []
    for try await name in group { names.append(name) }
    return names.sorted()
  }
  worker.stop()
  let report = await worker.finished()
  guard names == (1...3).map({ "\($0) on \"worker\"" }), report.completedCount == 3 else {
    throw Unexpected("\(names), \(report)")
  }
  return names.joined(separator: ", ") + "; ended with \(report.completedCount) done, \(report.rejectedCount) rejected"
}

/// The library's handle is opened, used and closed on one thread.
actor Database {
  private nonisolated let thread: ResidentThread
  private var store: any Store

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  init(_ store: any Store) throws {
    thread = try ResidentThread(name: "database")
    self.store = store
  }

  func open() throws { try store.open() }
  func insert(_ value: Int) throws { try store.insert(value) }
  func sum() throws -> (value: Int, thread: String) { (try store.sum(), Thread.current.name ?? "") }
  func close() { store.close() }
}

@MainActor func database() async throws -> String {
  let (store, name): (any Store, String) =
    if let library = SQLite() { (library, "SQLite \(library.version)") } else {
      (ThreadStore(), "without libsqlite3.so.0, the thread's own data")
    }
  let database = try Database(store)
  try await database.open()
  try await withThrowingTaskGroup(of: Void.self) { group in
    for value in 1...100 { group.addTask { try await database.insert(value) } }
    try await group.waitForAll()
  }
  let (sum, thread) = try await database.sum()
  await database.close()
  guard sum == 5050 else { throw Unexpected("the sum is \(sum)") }
  return "\(name): 100 tasks inserted rows on the thread \"\(thread)\", whose sum is \(sum)"
}
