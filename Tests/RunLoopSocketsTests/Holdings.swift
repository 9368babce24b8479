// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import TestSupport

@testable import RunLoopSockets

/// What this process has: descriptors, threads, children, and memory.
///
/// For a process in which a test is alone.
private struct Holdings {
  let descriptors = DescriptorCensus()
  let threads = Self.count("/proc/self/task")
  let children = Self.children
  let memory = Self.memory

  private static func count(_ path: String) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
  }

  /// How many children there are, those among them that have ended and nobody has reaped.
  private static var children: Int {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return tasks.reduce(0) { sum, task in
      let text = try? String(contentsOfFile: "/proc/self/task/\(task)/children", encoding: .utf8)
      return sum + (text ?? "").split(separator: " ").count
    }
  }

  /// How much memory is in use, without what the C library keeps for later.
  private static var memory: Int {
    typealias Trim = @convention(c) (Int) -> Int32
    if let address = dlsym(nil, "malloc_trim") { _ = unsafeBitCast(address, to: Trim.self)(0) }
    let text = (try? TLSFile.read("/proc/self/statm")).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * 4096
  }

  /// Whether no more is there now.
  ///
  /// The pools of Dispatch and of tasks have a thread more or less at any time.
  func isFollowed(by now: Holdings) -> Bool {
    descriptors.isFollowed(by: now.descriptors) && now.threads <= threads + 4 && now.children <= children
  }
}

/// Does something three times, of which nothing may be left that was not there after the first two times.
///
/// What it leaves is more than four threads, three descriptors or 8 MB, or it is not found. What other threads are yet
/// to give up is waited for.
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
