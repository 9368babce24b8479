// SPDX-License-Identifier: Apache-2.0

// Prints the changes below a directory until it is interrupted.
//
//     swift run --package-path Examples file-watcher DIRECTORY
//     swift run --package-path Examples file-watcher --demo
//
// The demo makes changes itself, checks the reports, and exits with 0 or 1.

import Glibc
import RunLoopCore
import RunLoopSystemEvents

/// Formats a change as one line.
func line(_ change: FileChange) -> String {
  let cookie = change.cookie == 0 ? "" : " (\(change.cookie))"
  return "\(change.kind) \(change.path)\(change.isDirectory ? "/" : "")\(cookie)"
}

func watch(_ directory: String) throws {
  let loop = RunLoop.main
  let files = try FileChangeSource(path: .init(directory), recursive: true) { source, changes in
    for change in changes { print(line(change)) }
    fflush(nil)
    if !source.isValid { RunLoop.current.stop() }
  }
  let interrupt = try SignalSource(signal: SIGINT) { _, _ in RunLoop.current.stop() }
  try loop.add(files, forMode: .default)
  try loop.add(interrupt, forMode: .default)
  print("watching \(files.watchCount) directories")
  for path in files.unreadable { print("not readable: \(path)") }
  fflush(nil)
  loop.runUntilStopped()
}

func run() throws -> Int32 {
  let arguments = CommandLine.arguments.dropFirst()
  guard let first = arguments.first, arguments.count == 1 else {
    print("usage: file-watcher DIRECTORY | --demo")
    return 2
  }
  if first == "--demo" { return try Demo().run() ? 0 : 1 }
  try watch(first)
  return 0
}

do {
  exit(try run())
} catch {
  print("file-watcher: \(error)")
  exit(1)
}
