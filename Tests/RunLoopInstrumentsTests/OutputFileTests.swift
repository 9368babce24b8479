// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

import enum RunLoopInstruments.Instruments
import enum RunLoopInstruments.InstrumentsError
import class RunLoopThreads.ResidentThread
import struct RunLoopToolKit.RecordError

@testable import RunLoopToolKit

/// Files written by the tool and the instruments where others can create files.
@Suite("Files that are written", .ownThread) struct OutputFileTests {
  private static let stranger: uid_t = 54_322

  /// Runs `body` with a world-writable directory, like `/tmp`.
  private func inScratch(_ body: (String) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    try #require(mkdir(directory, 0o700) == 0)
    chmod(directory, 0o1777)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try body(directory)
  }

  private func write(_ text: String, to path: String) throws {
    let file = try OutputFile(path)
    try file.write(Array(text.utf8))
    try file.finish()
  }

  private func read(_ path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }

  private func mode(_ path: String) -> mode_t {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
  }

  @Test("the user's own link is followed, and its target is replaced with the same permissions")
  func ownLinks() throws {
    try inScratch { directory in
      try "old".write(toFile: directory + "/target", atomically: false, encoding: .utf8)
      chmod(directory + "/target", 0o640)
      symlink("target", directory + "/link")
      symlink(directory + "/link", directory + "/second")
      try write("new", to: directory + "/second")
      #expect(read(directory + "/target") == "new")
      #expect(mode(directory + "/target") == 0o640)
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: directory + "/link") == "target")
      symlink("loop", directory + "/loop")
      #expect(throws: (any Error).self) { try write("new", to: directory + "/loop") }
      // An unfinished file leaves nothing behind.
      _ = try OutputFile(directory + "/other")
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted() == ["link", "loop", "second", "target"])
    }
  }

  @Test("a link or pipe of another user is rejected at once", .enabled(if: geteuid() == 0), arguments: [true, false])
  func foreignLinks(isLink: Bool) throws {
    try inScratch { directory in
      let victim = directory + "/victim"
      try "secret".write(toFile: victim, atomically: false, encoding: .utf8)
      chmod(victim, 0o600)
      let path = directory + "/out.html"
      if isLink { symlink(victim, path) } else { mkfifo(path, 0o666) }
      try #require(lchown(path, Self.stranger, Self.stranger) == 0)
      // The same behind the user's own link.
      symlink(path, directory + "/own")
      for name in [path, directory + "/own"] {
        let error = #expect(throws: RecordError.self) { try write("trace", to: name) }
        #expect(error?.description.contains("of another user") == true, "\(error?.description ?? "")")
      }
      #expect(read(victim) == "secret")
    }
  }

  @Test("another user's file is replaced, and its permissions are not kept", .enabled(if: geteuid() == 0))
  func foreignFiles() throws {
    try inScratch { directory in
      let path = directory + "/out.html"
      let held = open(path, O_RDWR | O_CREAT, 0o666)
      defer { close(held) }
      fchmod(held, 0o666)
      try #require(fchown(held, Self.stranger, Self.stranger) == 0)
      try write("trace", to: path)
      #expect(read(path) == "trace")
      #expect(mode(path) == 0o600)
      var status = stat()
      #expect(fstat(held, &status) == 0 && status.st_size == 0)
    }
  }

  @Test("the user's own pipe is written to, also through its descriptor")
  func pipes() throws {
    try inScratch { directory in
      var ends: [Int32] = [-1, -1]
      try #require(pipe(&ends) == 0)
      defer { for end in ends { close(end) } }
      try write("through", to: "/proc/self/fd/\(ends[1])")
      symlink("/proc/self/fd/\(ends[1])", directory + "/link")
      try write(" both", to: directory + "/link")
      var bytes = [UInt8](repeating: 0, count: 100)
      let count = Glibc.read(ends[0], &bytes, 100)
      #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "through both")
      try write("gone", to: "/dev/null")
      #expect(throws: (any Error).self) { try write("new", to: directory) }
      #expect(throws: (any Error).self) { try write("new", to: directory + "/a\0b") }
      #expect(throws: (any Error).self) { try write("new", to: directory + "/none/b") }
    }
  }

  @Test("the flight recorder replaces a file, even one open elsewhere, but not a link")
  func flightRecorder() async {
    await #expect(processExitsWith: .success) {
      let path = "/dev/shm/runloop-tests-\(UUID().uuidString)"
      let holder = Instruments.hold(.record)
      defer { holder.release() }
      let worker = try ResidentThread(name: "recorded")
      try worker.performAndWait {}
      let held = open(path, O_RDWR | O_CREAT, 0o666)
      defer {
        close(held)
        unlink(path)
      }
      try Instruments.writeRecord(to: path, last: .seconds(3600))
      var status = stat()
      #expect(fstat(held, &status) == 0 && status.st_size == 0 && status.st_nlink == 0)
      #expect(stat(path, &status) == 0 && status.st_size > 0 && status.st_mode & 0o777 == 0o600)
      for wrong in ["/dev/null", "/dev/shm", path + "\0.record", path + "/none"] {
        #expect(throws: InstrumentsError.self) { try Instruments.writeRecord(to: wrong, last: .zero) }
      }
      #expect(throws: InstrumentsError.self) { try Instruments.listen(in: "/dev/shm\0/other") }
    }
  }

  @Test("without a directory, the record of a killed program gets an unpredictable name")
  func fallback() async {
    await #expect(processExitsWith: .success) {
      let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
      try #require(mkdir(directory, 0o700) == 0)
      defer { try? FileManager.default.removeItem(atPath: directory) }
      setenv("TMPDIR", directory, 1)
      unsetenv("XDG_RUNTIME_DIR")
      let paths = (0..<3).map { _ in RecordCommand.fallbackPath(4711) }
      #expect(paths.allSatisfy { $0.hasPrefix(directory + "/runloop-4711.") && $0.hasSuffix(".record") })
      #expect(Set(paths).count == 3 && paths.allSatisfy { $0.count >= directory.count + 25 })
      // The user's own directory is preferred to a shared one, unless others can write to it.
      let own = directory + "/own"
      try #require(mkdir(own, 0o700) == 0)
      setenv("XDG_RUNTIME_DIR", own, 1)
      #expect(RecordCommand.fallbackPath(4711).hasPrefix(own + "/runloop-4711."))
      chmod(own, 0o777)
      #expect(!RecordCommand.fallbackPath(4711).hasPrefix(own))
    }
  }
}
