// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Names of message ports", .timeLimit(.minutes(20)))
struct MessagePortNameTests {
  private func port(_ directory: PortDirectory, _ name: String = "a") throws(MessagePortError) -> MessagePort.Local {
    try MessagePort.Local(name: name, directory: directory.place) { _ in nil }
  }

  @Test(
    "an invalid port name is rejected with an error that contains it",
    arguments: ["", "/", "..", ".a", "a/b", "a b", "ä", "a\0b", "x.lock", String(repeating: "a", count: 65), "-a"])
  func names(name: String) throws {
    let directory = try PortDirectory()
    #expect(portError { () throws(MessagePortError) in try port(directory, name) } == .invalidName(name))
    #expect(
      portError { () throws(MessagePortError) in try MessagePort.Remote(name: name, directory: directory.place) }
        == .invalidName(name))
    #expect(directory.entries.isEmpty)
  }

  @Test("a path that is too long for the kernel is rejected")
  func path() {
    let place = MessagePort.Directory(path: "/tmp/" + String(repeating: "d", count: 110))
    #expect(
      portError { () throws(MessagePortError) in try MessagePort.Local(name: "a", directory: place) { _ in nil } }
        == .pathTooLong(place.path + "/a"))
  }

  @Test("a living port owns its name exclusively, and releases it when it is invalidated")
  func inUse() throws {
    let directory = try PortDirectory()
    let first = try port(directory)
    #expect(directory.entries == ["a", "a.lock"])
    #expect(portError { () throws(MessagePortError) in try port(directory) } == .nameInUse("a"))
    first.invalidate()
    first.invalidate()
    #expect(directory.entries.isEmpty)
    let second = try port(directory)
    #expect(second.isValid && !first.isValid)
    #expect(
      portError { () throws(MessagePortError) in try RunLoop.current.add(first, forMode: .default) } == .invalid)
  }

  @Test("the files of a dead process do not prevent a new port")
  func stale() throws {
    let directory = try PortDirectory()
    _ = try directory.place.open(making: true)
    let path = directory.place.path
    // A socket without a listener, and a lock without an owner.
    let socket = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: (path + "/a").utf8) }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0)
    close(socket)
    close(open(path + "/a.lock", O_CREAT | O_RDWR, 0o600))
    #expect(
      portError { () throws(MessagePortError) in try MessagePort.Remote(name: "a", directory: directory.place) }
        == .noSuchPort("a"))
    let server = try PortServer(directory)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(try remote.send(id: 1, bytes: [3], receiveTimeout: .unlimited)?.bytes == [3])
    #expect(server.port.isValid)
  }

  @Test("of several ports that want a name at the same time, one has it at a time")
  func race() throws {
    let directory = try PortDirectory()
    let holders = Box((now: 0, most: 0, times: 0))
    let threads = (0..<4).map { _ in
      startThread { () -> Int in
        var others = 0
        for _ in 0..<200 {
          do throws(MessagePortError) {
            let port = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
            holders.update {
              $0.now += 1
              $0.times += 1
              $0.most = max($0.most, $0.now)
            }
            holders.update { $0.now -= 1 }
            port.invalidate()
          } catch {
            if error != .nameInUse("a") { others += 1 }
          }
        }
        return others
      }
    }
    #expect(threads.map { $0.result() } == [0, 0, 0, 0])
    #expect(holders.value.most == 1)
    #expect(holders.value.times > 0)
    #expect(directory.entries.isEmpty)
  }

  @Test("a port with an unused name is not found")
  func missing() throws {
    let directory = try PortDirectory()
    func remote() throws(MessagePortError) { _ = try MessagePort.Remote(name: "a", directory: directory.place) }
    #expect(portError(remote) == .noSuchPort("a"))
    _ = try directory.place.open(making: true)
    #expect(portError(remote) == .noSuchPort("a"))
  }

  @Test("the directory and the socket are accessible to this user only")
  func permissions() throws {
    let directory = try PortDirectory()
    let port = try port(directory)
    var status = stat()
    try #require(lstat(directory.place.path, &status) == 0)
    #expect(status.st_mode & 0o7777 == 0o700)
    try #require(lstat(directory.place.path + "/a", &status) == 0)
    #expect(status.st_mode & S_IFMT == S_IFSOCK)
    #expect(status.st_mode & 0o7777 == 0o600)
    port.invalidate()
  }

  @Test("a directory that others could change is rejected")
  func directories() throws {
    let directory = try PortDirectory()
    let path = directory.place.path
    func attempt() -> MessagePortError? { portError { () throws(MessagePortError) in try port(directory) } }
    try #require(symlink("/tmp", path) == 0)
    #expect(attempt() == .unsafeDirectory(path, .notADirectory))
    unlink(path)
    try #require(mkdir(path, 0o700) == 0)
    for mode: UInt32 in [0o710, 0o701, 0o770, 0o777] {
      chmod(path, mode)
      #expect(attempt() == .unsafeDirectory(path, .open(permissions: mode)))
    }
    chmod(path, 0o700)
    #expect(attempt() == nil)
    let relative = MessagePort.Directory(path: "ports")
    #expect(
      portError { () throws(MessagePortError) in try relative.open(making: true) }
        == .unsafeDirectory("ports", .notAbsolute))
  }

  @Test("both ends may reject the user at the other end")
  func credentials() throws {
    let directory = try PortDirectory()
    let asked = Box<[Int32]>([])
    let server = try PortServer(
      directory,
      accepts: { peer in
        asked.update { $0.append(peer.process) }
        return false
      })
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let error = portError { () throws(MessagePortError) in try remote.send(id: 1, receiveTimeout: .unlimited) }
    #expect(error == .rejected(.untrusted))
    #expect(asked.value == [getpid()])
    #expect(server.port.statistics == .init(untrustedCount: 1))
    let rejection = portError { () throws(MessagePortError) in
      try MessagePort.Remote(name: "a", directory: directory.place, accepts: { _ in false })
    }
    #expect(rejection == .untrustedPeer(remote.peer))
    #expect(!MessagePort.Credentials(process: 1, user: geteuid() + 1, group: 0).isSameUser)
  }
}
