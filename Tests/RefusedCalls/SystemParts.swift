// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import TestSupport

// Signals, child processes and file changes.
extension Parts {
  @Sendable static func signals() throws {
    let count = Box(0)
    let source = try SignalSource(signal: SIGUSR1) { _, event in count.value += event.count }
    try loop.add(source, forMode: .default)
    kill(getpid(), SIGUSR1)
    try run { count.value == 1 }
    source.invalidate()
  }

  /// Returns the end of a child as a source reports it.
  private static func end(_ make: (Box<String>) throws -> ChildProcessSource) throws -> String {
    let end = Box("")
    let source = try make(end)
    try loop.add(source, forMode: .default)
    try run { !end.value.isEmpty }
    source.invalidate()
    return end.value
  }

  private static func text(_ end: ChildProcessSource.End) -> String {
    switch end {
    case .ended(let status): "\(status)"
    case .unknown(let error): describe(error)
    }
  }

  /// A program with pipes, which inherits only the descriptors that are passed to it.
  @Sendable static func spawned() throws {
    // Not close-on-exec, and with a number that the program does not use for anything else before it checks.
    let inherited = fcntl(STDERR_FILENO, F_DUPFD, 100)
    defer { close(inherited) }
    var options = SpawnedProcess.Options()
    options.standardOutput = .pipe
    let program = try SpawnedProcess(CommandLine.arguments[0], ["is-open=\(inherited)"], options: options)
    let bytes = Box<[UInt8]>([])
    let output = program.standardOutput
    output?.handler = { stream, _ in
      guard let stream = stream as? InputByteStream else { return }
      withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
        if let count = try? stream.read(into: buffer) { bytes.value += Array(buffer[..<count]) }
      }
    }
    try output?.schedule(in: loop, forMode: .default)
    output?.open()
    let end = try end { end in
      ChildProcessSource(program) { end.value = text($1) }
    }
    try run { bytes.value.last == UInt8(ascii: "\n") }
    output?.close()
    try check(end == "exited with 0", "the status, which is \(end)")
    let said = String(decoding: bytes.value, as: UTF8.self)
    try check(said == "closed\n", "closed descriptors: \(inherited) is \(said)")
  }

  @Sendable static func killed() throws {
    let program = try SpawnedProcess("/bin/sleep", ["1000"])
    let signal = Box("")
    let end = try end { end in
      let source = ChildProcessSource(program) { end.value = text($1) }
      do { try program.send(signal: SIGTERM) } catch { signal.value = describe(error) }
      if !signal.value.isEmpty { kill(program.process, SIGKILL) }
      return source
    }
    if !signal.value.isEmpty { throw Missing(what: "a signal: \(signal.value)") }
    try check(end == "ended by signal \(SIGTERM)", "the signal, but \(end)")
    do {
      try program.send(signal: 0)
      throw Missing(what: "an error for a process that is gone")
    } catch let error as SystemError {
      try check(error.number == ESRCH, "ESRCH for a process that is gone, but \(error)")
    }
  }

  /// A child that other code has started.
  @Sendable static func children() throws {
    let child = forkProcess()
    if child == 0 { _exit(7) }
    do {
      let end = try end { end in try ChildProcessSource(process: child) { end.value = text($1) } }
      try check(end == "exited with 7", "the status, which is \(end)")
    } catch {
      _ = ForkedEnd(waitingFor: child)
      throw error
    }
  }

  /// Returns the kinds of changes that are observed at a path when an action is performed.
  private static func changes(
    of path: String, recursive: Bool, until name: String, _ act: () throws -> Void
  ) throws -> [FileChange] {
    let seen = Box<[FileChange]>([])
    let source = try FileChangeSource(path: .init(path), recursive: recursive) { seen.value += $1 }
    try loop.add(source, forMode: .default)
    try act()
    try run { seen.value.contains { "\($0.path)".hasSuffix(name) } }
    source.invalidate()
    return seen.value
  }

  private static func write(_ path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    try check(file >= 0 && Glibc.write(file, "x", 1) == 1, "a file at \(path)")
    close(file)
  }

  @Sendable static func files() throws {
    let scratch = try ScratchDirectory()
    try write(scratch.path + "/file")
    _ = try changes(of: scratch.path + "/file", recursive: false, until: "file") { try write(scratch.path + "/file") }
  }

  @Sendable static func tree() throws {
    let scratch = try ScratchDirectory()
    mkdir(scratch.path + "/old", 0o700)
    // New directories are watched too, wherever they are moved.
    let seen = try changes(of: scratch.path, recursive: true, until: "new/deep/last") {
      mkdir(scratch.path + "/made", 0o700)
      mkdir(scratch.path + "/made/deep", 0o700)
      rename(scratch.path + "/made", scratch.path + "/old/new")
      try write(scratch.path + "/old/new/deep/last")
    }
    for change in seen {
      if case .unwatched(let error) = change.kind { throw Missing(what: "a watch: \(describe(error))") }
    }
  }
}
