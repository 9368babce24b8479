// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSystemEvents

/// A source for one path in a new directory, and its reports.
struct WatchedPath {
  let scratch: Scratch
  let loop: RunLoop
  let source: FileChangeSource
  private let changes = Notes<FileChange>()
  private let asked = Notes<Int>()

  init(
    _ name: String, in scratch: Scratch, _ loop: RunLoop, isFollowing: Bool, recursive: Bool,
    events: FileChangeSource.Events?, limit: Int
  ) throws {
    (self.scratch, self.loop) = (scratch, loop)
    let path = FileChangeSource.Path(name.isEmpty ? scratch.path : scratch(name))
    source = try FileChangeSource(
      path, recursive, events ?? (isFollowing ? .all.union(.written) : .all), isFollowing: isFollowing,
      ownQueue: WatchQueue(), limit: limit
    ) { [changes] in changes.add(contentsOf: $1) }
    try loop.add(source, forMode: .default)
  }

  /// Returns the reports since the last call, without those of closed files, once no more are pending.
  ///
  /// A file is closed when the last copy of its descriptor is, and a child of another test may hold one until it has
  /// executed its program.
  func told() -> [String] {
    loop.drain()
    return take().filter { !$0.hasPrefix("written") }
  }

  /// Runs the loop until a file is reported as written, and returns all reports since the last call.
  func toldWritten() -> [String] {
    let start = asked.all.reduce(0, +)
    loop.run { changes.all[start...].last?.kind == .written }
    // A late report is about a file that was written before.
    let told = take()
    let rest = told.drop { $0.hasPrefix("written") }
    return rest.isEmpty ? told.suffix(1) : Array(rest)
  }

  private func take() -> [String] {
    let start = asked.all.reduce(0, +)
    let all = changes.all
    asked.add(all.count - start)
    return scratch.text(Array(all[start...]))
  }
}

/// Watches a path in a new directory, or the directory itself, on a new thread.
func watchingPath(
  _ name: String, isFollowing: Bool = false, recursive: Bool = false, events: FileChangeSource.Events? = nil,
  limit: Int = WatchInbox.defaultLimit, prepare: @escaping @Sendable (Scratch) -> Void = { _ in },
  _ body: @escaping @Sendable (WatchedPath) throws -> Void
) {
  SourceRig.onThread { loop in
    do {
      let scratch = Scratch()
      prepare(scratch)
      let watched = try WatchedPath(
        name, in: scratch, loop, isFollowing: isFollowing, recursive: recursive, events: events, limit: limit)
      try body(watched)
      watched.source.invalidate()
    } catch {
      Issue.record(error)
    }
  }
}

extension Scratch {
  /// Writes a temporary file and renames it to its final name, as most programs save.
  func replace(_ name: String, text: String = "new") {
    make(".tmp", text: text)
    move(".tmp", name)
  }

  func link(_ name: String, to target: String) { precondition(symlink(target, self(name)) == 0) }
}
