// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSockets

/// Paths that name another file than they seem to, and directories that others can write to.
@Suite struct ForeignPathTests {
  private func failure(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "nothing"
    } catch { return "\(error)" }
  }

  @Test("a path with a zero byte is an error, and is not truncated to another path")
  func zeroBytes() throws {
    let scratch = Scratch()
    scratch.make("file")
    let path = scratch("file")
    let cut = path + "\0.pem"
    let invalid = SystemError(call: "open", number: EINVAL)
    #expect(throws: TLSError(.file(path: cut, invalid))) { try TLSFile.read(cut) }
    #expect(throws: SocketAddressError.notAPath(cut)) { try SocketAddress(path: cut) }
    #expect(throws: SpawnError.zeroByte(cut)) { try SpawnedProcess(cut) }
    #expect(throws: SpawnError.zeroByte(cut)) { try SpawnedProcess("true", [cut]) }
    var options = SpawnedProcess.Options()
    options.directory = cut
    #expect(throws: SpawnError.zeroByte(cut)) { try SpawnedProcess("true", options: options) }
    options = .init()
    options.environment = ["A": cut]
    #expect(throws: SpawnError.zeroByte("A=" + cut)) { try SpawnedProcess("true", options: options) }
    options.environment = ["A\0B": "c"]
    #expect(throws: SpawnError.zeroByte("A\0B=c")) { try SpawnedProcess("true", options: options) }
    #expect(access(path, F_OK) == 0)
  }

  @Test("a program is not searched for in the working directory, even if PATH has empty entries")
  func workingDirectory() async {
    await #expect(processExitsWith: .success) {
      let scratch = Scratch()
      try #require(symlink("/bin/true", scratch("planted")) == 0)
      try #require(chdir(scratch.path) == 0)
      for path in [":", "", "::/a:"] {
        setenv("PATH", path, 1)
        #expect(throws: SpawnError.notFound(program: "planted")) { try SpawnedProcess("planted") }
      }
      _ = try SpawnedProcess("./planted")
      setenv("PATH", scratch.path, 1)
      _ = try SpawnedProcess("planted")
      try #require(chdir("/") == 0)
    }
  }

  @Test("a lock on a shared directory does not prevent the replacement of a stale file there")
  func heldDirectory() throws {
    let scratch = Scratch()
    chmod(scratch.path, 0o1777)
    let address = try SocketAddress(path: scratch("socket"))
    var options = ListeningSocket.Options()
    options.removesFile = false
    try ListeningSocket(at: address, options: options).invalidate()
    options.replacesStaleFile = true
    options.removesFile = true
    let held = open(scratch.path, O_RDONLY | O_DIRECTORY)
    defer { close(held) }
    try #require(flock(held, LOCK_EX | LOCK_NB) == 0)
    let listener = try ListeningSocket(at: address, options: options)
    _ = try Socket(connectingTo: address)
    listener.invalidate()
    // Only processes of the same user can lock a private directory.
    chmod(scratch.path, 0o700)
    #expect(failure { _ = try ListeningSocket(at: address, options: options) }.contains("flock"))
  }
}
