// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import TestSupport

@testable import RunLoopSockets

/// The descriptors, threads, children and memory of this process.
///
/// Only meaningful in a process that runs a single test.
private struct Holdings {
  let descriptors = DescriptorCensus()
  let threads = Self.count("/proc/self/task")
  let children = Self.children
  let memory = Self.memory

  private static func count(_ path: String) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
  }

  /// The number of children, including those that have ended and were not reaped.
  private static var children: Int {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return tasks.reduce(0) { sum, task in
      let text = try? String(contentsOfFile: "/proc/self/task/\(task)/children", encoding: .utf8)
      return sum + (text ?? "").split(separator: " ").count
    }
  }

  /// The memory in use, without the C library's free lists.
  private static var memory: Int {
    typealias Trim = @convention(c) (Int) -> Int32
    if let address = dlsym(nil, "malloc_trim") { _ = unsafeBitCast(address, to: Trim.self)(0) }
    let text = (try? TLSFile.read("/proc/self/statm")).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * 4096
  }

  /// Whether a later measurement shows no increase.
  ///
  /// The thread pools of Dispatch and of tasks may gain or lose a thread at any time.
  func isFollowed(by now: Holdings) -> Bool {
    descriptors.isFollowed(by: now.descriptors) && now.threads <= threads + 4 && now.children <= children
  }
}

/// Runs a body three times, and fails if the third run leaves anything behind.
///
/// A leak is detected from five threads, four descriptors or 8 MB on. Resources that other threads are still
/// releasing are waited for.
func expectNothingLeft(
  _ body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async rethrows {
  for _ in 0..<2 { try await body() }
  let before = Holdings()
  for _ in 0..<3 { try await body() }
  waitUntil { before.isFollowed(by: Holdings()) }
  let after = Holdings()
  #expect(after.memory < before.memory + 8 << 20, "\(before), then \(after)", sourceLocation: sourceLocation)
}
