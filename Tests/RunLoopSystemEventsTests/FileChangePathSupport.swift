// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSystemEvents

/// A source of one path in a fresh directory, and what it has reported.
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

  /// All but the ends of writing that was reported since this was last asked, when nothing is left to report.
  ///
  /// A file is closed when the last copy of its descriptor is, and a child of another test may have one until it has
  /// become its program.
  func told() -> [String] {
    loop.drain()
    return take().filter { !$0.hasPrefix("written") }
  }

  /// All that was reported, up to the end of writing.
  func toldWritten() -> [String] {
    let start = asked.all.reduce(0, +)
    loop.run { changes.all[start...].last?.kind == .written }
    // One that came late is of a file that was written before.
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

/// Watches a path of a fresh directory, or that directory, on a thread of its own.
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
  /// Writes a file under another name and moves it into its place, as most programs save.
  func replace(_ name: String, text: String = "new") {
    make(".tmp", text: text)
    move(".tmp", name)
  }

  func link(_ name: String, to target: String) { precondition(symlink(target, self(name)) == 0) }
}
