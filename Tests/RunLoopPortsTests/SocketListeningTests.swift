import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopPorts

@Suite("Listening sockets", .timeLimit(.minutes(5)))
struct SocketListeningTests {
  @Test("a port is taken by one at a time, and free when its socket is invalidated")
  func inUse() throws {
    let first = try ListeningSocket(at: .loopback(port: 0))
    #expect(socketFailure { _ = try ListeningSocket(at: first.address) } == "bind:\(EADDRINUSE)")
    first.invalidate()
    #expect(!first.isValid)
    try ListeningSocket(at: first.address).invalidate()
  }

  @Test("the file of a Unix address is there as long as its socket listens")
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

  @Test("a socket that is paused lets connections wait")
  func paused() {
    let log = onSocketLoop { loop, log in
      let listener = try ListeningSocket(at: .loopback(port: 0)) { _, event in
        if case .accepted = event { log.write("accepted") }
        loop.stop()
      }
      try loop.add(listener, forMode: .default)
      listener.pause()
      let socket = try Socket(connectingTo: listener.address)
      log.write("\(loop.run(mode: .default, for: .milliseconds(5)))")
      listener.resume()
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
      try listener.schedule(in: loop, forMode: .common)
      try listener.schedule(in: loop, forMode: "b")
      for mode in ["a", "b"] as [RunLoop.Mode] {
        let socket = try Socket(connectingTo: listener.address)
        log.write("\(loop.run(mode: mode, for: .unlimited, returnAfterSourceHandled: true))")
        socket.invalidate()
      }
      listener.remove(from: loop, forMode: "b")
      log.write("\(loop.run(mode: "b", for: .unlimited)) \(loop.contains(listener, forMode: .common))")
      loop.remove(listener, forMode: .common)
      log.write("\(loop.run(mode: "a", for: .unlimited)) \(loop.contains(listener, forMode: "a"))")
    }
    #expect(log == "a handledSource b handledSource finished true finished false")
  }

  @Test("descriptions say what there is")
  func descriptions() throws {
    let listener = try ListeningSocket(at: .loopback(port: 0))
    #expect(listener.debugDescription.contains("address = \(listener.address), paused = false"))
    let socket = try Socket(connectingTo: listener.address)
    #expect(socket.debugDescription.contains("phase = connecting"))
    socket.invalidate()
    #expect(socket.debugDescription.contains("descriptor = -1, phase = closed"))
  }
}
