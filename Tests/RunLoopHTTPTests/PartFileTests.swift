// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The partial files of downloads.
@Suite struct PartFileTests {
  @Test("a partial file that another download renames at that moment is not taken for the next one")
  func renaming() async throws {
    let path = "/tmp/RunLoopHTTPTests.\(RunLoopTestPath.next())"
    defer { RunLoopTestPath.remove(path) }
    let (isOver, hasEnded, renames) = (Latch(), Latch(), Counter())
    let other = try ResidentThread(name: "other")
    other.runLoop.perform {
      while !isOver.isOpen {
        let file = open(path + ".part", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        var (own, named) = (stat(), stat())
        if flock(file, LOCK_EX | LOCK_NB) == 0, fstat(file, &own) == 0, stat(path + ".part", &named) == 0,
          own.st_ino == named.st_ino
        {
          rename(path + ".part", path)
          renames.add()
        }
        close(file)
        // Leaves a moment in which no file of the name exists.
        usleep(20)
      }
      hasEnded.open()
    }
    let missing = await elsewhere {
      var missing = 0
      while renames.value < 500 {
        // Only the owner of the file lock renames it.
        if let file = try? PartFile(path, url: "http://a/", resumes: false) {
          if access(path + ".part", F_OK) != 0 { missing += 1 }
          file.letGo()
        }
        sched_yield()
      }
      isOver.open()
      hasEnded.wait()
      return missing
    }
    #expect(missing == 0)
    other.stop()
  }

  @Test("a target that is not a regular file is not replaced", arguments: ["device", "directory", "link", "dangling"])
  func specialFiles(_ kind: String) throws {
    let path = "/tmp/RunLoopHTTPTests.\(RunLoopTestPath.next())"
    defer { _ = remove(path) }
    defer { RunLoopTestPath.remove(path + ".target") }
    switch kind {
    case "device": try #require(symlink("/dev/null", path) == 0)
    case "link":
      RunLoopTestPath.write(Array("old".utf8), to: path + ".target")
      try #require(symlink(path + ".target", path) == 0)
    case "dangling": try #require(symlink(path + ".target", path) == 0)
    default: try #require(mkdir(path, 0o700) == 0)
    }
    #expect {
      try PartFile(path, url: "http://a/", resumes: false)
    } throws: {
      ($0 as? HTTP.Error)?.code == .fileFailed
    }
    #expect(access(path + ".part", F_OK) != 0)
    #expect(RunLoopTestPath.read(path + ".target") == (kind == "link" ? Array("old".utf8) : nil))
  }

  @Test("a note whose validator has a control character is ignored")
  func badNotes() throws {
    let path = "/tmp/RunLoopHTTPTests.\(RunLoopTestPath.next())"
    defer { RunLoopTestPath.remove(path) }
    for (validator, received) in [("\"1\"", 4), ("\"1\r\nX: y\"", 0)] as [(String, Int64)] {
      RunLoopTestPath.write(Array("part".utf8), to: path + ".part")
      let note = PartNote(url: "http://a/", validator: validator, total: 9)
      RunLoopTestPath.write(Array(note.text.utf8), to: path + ".part.json")
      let file = try PartFile(path, url: "http://a/", resumes: true)
      #expect(file.kept.received == received)
      file.letGo()
    }
  }
}
