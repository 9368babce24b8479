// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopMessages

/// The id of a user that owns nothing on this machine.
private let stranger = UInt32.random(in: 40_000..<50_000)

@Suite("Directories of message ports that others could change", .timeLimit(.minutes(20)))
struct MessagePortDirectoryTests {
  private func outcome(_ place: MessagePort.Directory) -> MessagePortError? {
    portError { () throws(MessagePortError) in try MessagePort.Local(name: "a", directory: place) { _ in nil } }
  }

  @Test("a directory in one that others may write to is rejected, unless that is sticky", arguments: [true, false])
  func parents(isShared: Bool) throws {
    let directory = try PortDirectory()
    let place = MessagePort.Directory(path: directory.path + "/ports", isShared: isShared)
    for mode: UInt32 in [0o777, 0o770, 0o733] {
      chmod(directory.path, mode)
      #expect(outcome(place) == .unsafeDirectory(directory.path, .open(permissions: mode)))
      #expect(
        portError { () throws(MessagePortError) in try MessagePort.Remote(name: "a", directory: place) }
          != .noSuchPort("a") || directory.entries.isEmpty)
    }
    chmod(directory.path, 0o1777)
    #expect(outcome(place) == nil)
    chmod(directory.path, 0o755)
    #expect(outcome(place) == nil)
  }

  @Test("a symbolic link above the directory is followed, and its target is checked")
  func links() throws {
    let directory = try PortDirectory()
    let other = try PortDirectory()
    try #require(symlink(other.path, directory.path + "/ports") == 0)
    let place = MessagePort.Directory(path: directory.path + "/ports/ports")
    #expect(outcome(place) == nil)
    chmod(other.path, 0o777)
    #expect(outcome(place) == .unsafeDirectory(other.path, .open(permissions: 0o777)))
  }

  @Test("a directory that is a symbolic link is rejected, however it ends", arguments: ["", "/", "///", "/.", "/./"])
  func link(end: String) throws {
    let directory = try PortDirectory()
    let other = try PortDirectory()
    try #require(symlink(other.path, directory.path + "/ports") == 0)
    let place = MessagePort.Directory(path: directory.path + "/ports" + end)
    #expect(outcome(place) == .unsafeDirectory(place.path, .notADirectory))
    #expect(
      portError { () throws(MessagePortError) in try MessagePort.Remote(name: "a", directory: place) }
        == .unsafeDirectory(place.path, .notADirectory))
    let plain = MessagePort.Directory(path: other.path + "/ports" + end)
    #expect(outcome(plain) == (end.contains(".") ? .unsafeDirectory(plain.path, .notADirectory) : nil))
  }

  @Test("the socket has its permissions whatever the process's umask", arguments: [0, 0o022, 0o077] as [UInt32])
  func mask(mask: UInt32) async {
    switch mask {
    case 0:
      await #expect(processExitsWith: .success) { try MessagePortDirectoryTests.makePorts(mask: 0) }
    case 0o022:
      await #expect(processExitsWith: .success) { try MessagePortDirectoryTests.makePorts(mask: 0o022) }
    default:
      await #expect(processExitsWith: .success) { try MessagePortDirectoryTests.makePorts(mask: 0o077) }
    }
  }

  /// Creates ports in both kinds of directories.
  private static func makePorts(mask: UInt32) throws {
    let directory = try PortDirectory()
    try #require(mkdir(directory.place.path, 0o711) == 0)
    umask(mask)
    for (isShared, mode) in [(true, 0o666), (false, 0o600)] as [(Bool, UInt32)] {
      chmod(directory.place.path, isShared ? 0o711 : 0o700)
      let place = MessagePort.Directory(path: directory.place.path, isShared: isShared)
      let port = try MessagePort.Local(name: "a", directory: place) { _ in nil }
      var status = stat()
      try #require(lstat(directory.place.path + "/a", &status) == 0)
      #expect(status.st_mode & 0o7777 == mode)
      _ = try MessagePort.Remote(name: "a", directory: place)
      port.invalidate()
    }
  }

  @Test("a service's own directory is used if there is no user directory")
  func service() async {
    await #expect(processExitsWith: .success) {
      unsetenv("XDG_RUNTIME_DIR")
      setenv("RUNTIME_DIRECTORY", "/run/first:/run/second", 1)
      #expect(MessagePort.Directory.user.path == "/run/first/runloop")
      setenv("RUNTIME_DIRECTORY", "relative", 1)
      #expect(MessagePort.Directory.user.path.hasPrefix("/tmp/runloop-\(geteuid())"))
      setenv("XDG_RUNTIME_DIR", "/run/user/7", 1)
      #expect(MessagePort.Directory.user.path == "/run/user/7/runloop")
    }
  }
}

@Suite(
  "Directories of message ports that belong to other users", .timeLimit(.minutes(20)),
  .enabled(if: geteuid() == 0, "only root can give files to another user"))
struct ForeignDirectoryTests {
  @Test("another user's directory is not used for a local port, even if it is shared", arguments: [true, false])
  func foreign(isShared: Bool) throws {
    let directory = try PortDirectory()
    let place = MessagePort.Directory(path: directory.path + "/ports", isShared: isShared)
    try #require(mkdir(place.path, 0o711) == 0)
    try #require(chown(place.path, stranger, stranger) == 0)
    func make() throws(MessagePortError) { _ = try MessagePort.Local(name: "a", directory: place) { _ in nil } }
    #expect(portError(make) == .unsafeDirectory(place.path, .foreign(user: stranger)))
    #expect(directory.entries.isEmpty)
    chown(place.path, 0, 0)
    chown(directory.path, stranger, stranger)
    #expect(portError(make) == .unsafeDirectory(directory.path, .foreign(user: stranger)))
    #expect(directory.entries.isEmpty)
    chown(directory.path, 0, 0)
  }

  @Test(
    "a user whose name in /tmp is taken by another gets a different one, which all processes find",
    .disabled(if: isSanitizedForThreads, "the child of a process with many threads"))
  func squatted() async {
    await #expect(processExitsWith: .success) {
      let squat = "/tmp/runloop-\(stranger)"
      try #require(mkdir(squat, 0o755) == 0)
      defer { rmdir(squat) }
      unsetenv("XDG_RUNTIME_DIR")
      unsetenv("RUNTIME_DIRECTORY")
      #expect(
        inForkedChild {
          guard setgid(stranger) == 0, setuid(stranger) == 0 else {
            return 1
          }
          let port = try MessagePort.Local(name: "a") { _ in nil }
          let path = MessagePort.Directory.user.path
          guard path.hasPrefix(squat + ".") else { return 2 }
          // Repeated as another process would do it.
          guard MessagePort.Directory.user.path == path else { return 3 }
          _ = try MessagePort.Remote(name: "a")
          port.invalidate()
          rmdir(path)
          return 0
        } == .exited(0))
    }
  }

  @Test("a path or a name with a zero byte is an error, and is not truncated")
  func zeroBytes() throws {
    let cut = "/tmp/ports\0.d"
    let directory = MessagePort.Directory(path: cut)
    #expect(throws: MessagePortError.unsafeDirectory(cut, .notAbsolute)) { _ = try directory.open(making: true) }
    #expect(throws: MessagePortError.invalidName("a\0b")) {
      try MessagePort.Directory(path: "/tmp").check("a\0b")
    }
  }
}
