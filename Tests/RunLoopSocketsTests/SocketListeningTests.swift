// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Listening sockets", .timeLimit(.minutes(20)))
struct SocketListeningTests {
  @Test("a port is bound by one socket at a time, and free when that is invalidated")
  func inUse() async throws {
    // In its own process: a process that another test forks at this moment would inherit the socket and keep the
    // port.
    await #expect(processExitsWith: .success) {
      // At an address that no other process uses, where the freed port cannot be taken.
      let host = "127.91.\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
      let first = try ListeningSocket(at: SocketAddress(host: host, port: 0))
      #expect(socketFailure { _ = try ListeningSocket(at: first.address) } == "bind:\(EADDRINUSE)")
      first.invalidate()
      #expect(!first.isValid)
      try ListeningSocket(at: first.address).invalidate()
    }
  }

  @Test("the file of a Unix address exists as long as its socket listens")
  func file() throws {
    let path = socketPath()
    let listener = try ListeningSocket(at: SocketAddress(path: path))
    #expect(access(path, F_OK) == 0)
    #expect(socketFailure { _ = try ListeningSocket(at: SocketAddress(path: path)) } == "bind:\(EADDRINUSE)")
    #expect(access(path, F_OK) == 0)
    listener.invalidate()
    #expect(access(path, F_OK) == -1)
    do {
      let dropped = try ListeningSocket(at: SocketAddress(path: path))
      #expect(dropped.isValid)
    }
    #expect(access(path, F_OK) == -1)
  }

  @Test("a file that has replaced the socket's own is not removed")
  func otherFile() throws {
    let path = socketPath()
    let first = try ListeningSocket(at: SocketAddress(path: path))
    // Like a program that replaces its predecessor.
    try #require(unlink(path) == 0)
    let second = try ListeningSocket(at: SocketAddress(path: path))
    first.invalidate()
    #expect(access(path, F_OK) == 0)
    second.invalidate()
    #expect(access(path, F_OK) == -1)
    do {
      let dropped = try ListeningSocket(at: SocketAddress(path: path))
      #expect(dropped.isValid)
      try #require(unlink(path) == 0)
      close(open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0o600))
    }
    #expect(access(path, F_OK) == 0)
    unlink(path)
  }

  @Test("a socket's file is kept on request, and may be replaced when no socket listens on it")
  func stale() throws {
    let address = try SocketAddress(path: socketPath())
    let path = try #require(address.path)
    var options = ListeningSocket.Options()
    options.removesFile = false
    try ListeningSocket(at: address, options: options).invalidate()
    #expect(access(path, F_OK) == 0)
    #expect(socketFailure { _ = try ListeningSocket(at: address) } == "bind:\(EADDRINUSE)")
    options.replacesStaleFile = true
    options.removesFile = true
    let listener = try ListeningSocket(at: address, options: options)
    _ = try Socket(connectingTo: address)
    // A socket listens there now.
    #expect(socketFailure { _ = try ListeningSocket(at: address, options: options) } == "bind:\(EADDRINUSE)")
    _ = try Socket(connectingTo: address)
    listener.invalidate()
    #expect(access(path, F_OK) == -1)
    // A file that is not a socket is never removed.
    close(open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0o600))
    #expect(socketFailure { _ = try ListeningSocket(at: address, options: options) } == "bind:\(EADDRINUSE)")
    #expect(access(path, F_OK) == 0)
    unlink(path)
  }

  @Test("of several sockets that replace a stale file at the same time, one listens")
  func race() throws {
    for _ in 0..<20 {
      let address = try SocketAddress(path: socketPath())
      var options = ListeningSocket.Options()
      options.removesFile = false
      try ListeningSocket(at: address, options: options).invalidate()
      options.removesFile = true
      options.replacesStaleFile = true
      let (made, failed) = (Notes<ListeningSocket>(), Notes<String>())
      let (begin, given) = (Latch(), options)
      let threads = (0..<4).map { _ in
        SourceRig.start {
          begin.wait()
          failed.add(socketFailure { made.add(try ListeningSocket(at: address, options: given)) })
        }
      }
      begin.open()
      for thread in threads { thread.join() }
      #expect(made.count == 1 && failed.all.count { $0 == "bind:\(EADDRINUSE)" } == 3, "\(failed.all)")
      _ = try Socket(connectingTo: address)
      for listener in made.all { listener.invalidate() }
    }
  }

  @Test("the file of a relative path is removed after a change of the working directory")
  func relative() async {
    await #expect(processExitsWith: .success) {
      let name = "socket"
      let scratch = Scratch()
      scratch.makeDirectory("other")
      try #require(chdir(scratch.path) == 0)
      let listener = try ListeningSocket(at: SocketAddress(path: name))
      try #require(chdir("other") == 0)
      scratch.make("other/" + name)
      listener.invalidate()
      #expect(access(scratch(name), F_OK) == -1 && access(scratch("other/" + name), F_OK) == 0)
      try #require(chdir("/") == 0)
    }
  }

  @Test("connections wait while a listening socket is paused")
  func paused() {
    let log = onSocketLoop { loop, log in
      let listener = try ListeningSocket(at: .loopback(port: 0)) { _, event in
        if case .accepted = event { log.write("accepted") }
        loop.stop()
      }
      try loop.add(listener, forMode: .default)
      listener.pauseAccepting()
      let socket = try Socket(connectingTo: listener.address)
      log.write("\(loop.run(mode: .default, for: .milliseconds(5)))")
      listener.resumeAccepting()
      log.write("\(loop.runUntilStopped())")
      listener.invalidate()
      socket.invalidate()
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "timedOut accepted stopped finished")
  }

  @Test("a listening socket is in the modes that it is added to")
  func modes() throws {
    let log = onSocketLoop { loop, log in
      let listener = try ListeningSocket(at: .loopback(port: 0)) { _, _ in
        log.write("\(loop.currentMode.map(\.rawValue) ?? "none")")
      }
      try loop.addCommonMode("a")
      try loop.add(listener, forMode: .common)
      try loop.add(listener, forMode: "b")
      for mode in ["a", "b"] as [RunLoop.Mode] {
        let socket = try Socket(connectingTo: listener.address)
        log.write("\(loop.run(mode: mode, for: .unlimited, returnAfterSourceHandled: true))")
        socket.invalidate()
      }
      loop.remove(listener, forMode: "b")
      log.write("\(loop.run(mode: "b", for: .unlimited)) \(loop.contains(listener, forMode: .common))")
      loop.remove(listener, forMode: .common)
      log.write("\(loop.run(mode: "a", for: .unlimited)) \(loop.contains(listener, forMode: "a"))")
    }
    #expect(log == "a handledSource b handledSource finished true finished false")
  }

  @Test("a listening socket's description contains its address and state")
  func descriptions() throws {
    let listener = try ListeningSocket(at: .loopback(port: 0))
    #expect(listener.debugDescription.contains("address = \(listener.address), paused = false"))
    let socket = try Socket(connectingTo: listener.address)
    #expect(socket.debugDescription.contains("phase = connecting"))
    socket.invalidate()
    #expect(socket.debugDescription.contains("descriptor = -1, phase = closed"))
  }
}
