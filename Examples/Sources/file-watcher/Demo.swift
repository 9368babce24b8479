// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSystemEvents

/// Changes a directory while a resident loop watches it, and compares the reports with the changes.
struct Demo {
  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  func run() throws -> Bool {
    var template = Array("/tmp/file-watcher-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw Failure(description: "no directory (\(errno))") }
    let root = String(cString: made)
    let loop = RunLoop.main
    let expected = [
      "created /a/", "created /a/notes", "modified /a/notes", "movedFrom /a/", "movedTo /b/", "created /b/more",
      "removed /b/notes", "removed /b/more", "removed /b/", "rootGone ",
    ]

    let told = Told()
    let source = try FileChangeSource(
      path: .init(root), recursive: true, events: [.created, .removed, .modified, .moved]
    ) {
      source, changes in
      for change in changes {
        print(line(change))
        told.lines.append("\(change.kind) \(change.path.string.dropFirst(root.count))\(slash(change))")
      }
      if !source.isValid { RunLoop.current.stop() }
    }
    try loop.add(source, forMode: .default)

    // Each step waits for the report of the previous one, so that the order is fixed.
    let steps: [(Int, () -> Int32)] = [
      (1, { mkdir(root + "/a", 0o700) }),
      (3, { write(root + "/a/notes", "first") }),
      (5, { rename(root + "/a", root + "/b") }),
      (6, { write(root + "/b/more", "") }),
      (7, { unlink(root + "/b/notes") }),
      (8, { unlink(root + "/b/more") }),
      (9, { rmdir(root + "/b") }),
      (10, { rmdir(root) }),
    ]
    for (count, step) in steps {
      guard step() == 0 else { throw Failure(description: "a step failed (\(errno))") }
      while told.lines.count < count {
        let result = loop.run(mode: .default, for: .seconds(30), returnAfterSourceHandled: true)
        guard result != .timedOut else { throw Failure(description: "nothing was told for half a minute") }
        guard source.isValid || told.lines.count >= count else { break }
      }
    }
    let isRight = told.lines == expected
    print(isRight ? "told of all, in order" : "expected \(expected), was told \(told.lines)")
    return isRight
  }

  private func slash(_ change: FileChange) -> String {
    change.isDirectory && change.kind != .rootGone ? "/" : ""
  }

  private func write(_ path: String, _ text: String) -> Int32 {
    let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { return -1 }
    defer { close(file) }
    return text.isEmpty || Glibc.write(file, text, text.utf8.count) == text.utf8.count ? 0 : -1
  }
}

/// The reported changes, used by the main thread only.
private final class Told: @unchecked Sendable {
  // Sendable: used only by the main thread, which runs the loop.
  var lines: [String] = []
}
