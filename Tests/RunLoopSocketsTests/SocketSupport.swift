// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

/// Runs `body` with the loop of a new thread, on the system's clock, and returns the log.
func onSocketLoop(_ body: @escaping @Sendable (RunLoop, Log) throws -> Void) -> String {
  onNewThread {
    let log = Log()
    do { try body(RunLoop.current, log) } catch { log.write("threw \(error)") }
    return log.text
  }
}

/// Like `onSocketLoop`, on virtual time.
///
/// A pair of Unix sockets is ready immediately, so a run that times out has served everything.
func onVirtualSocketLoop(_ body: @escaping @Sendable (RunLoop, Log) throws -> Void) -> String {
  onVirtualTime { _, loop in
    let log = Log()
    do { try body(loop, log) } catch { log.write("threw \(error)") }
    return log.text
  }
}

/// Waits in a task until a condition holds, yielding the thread to the tasks that make it true.
func yieldUntil(_ condition: () throws -> Bool) async rethrows { while try !condition() { await Task.yield() } }

extension RunLoop {
  /// Adds a listening socket that accepts each connection with a handler.
  func listen(
    at address: SocketAddress = .loopback(port: 0), options: ListeningSocket.Options = .init(),
    _ handler: @escaping Socket.Handler
  ) throws -> ListeningSocket {
    let listener = try ListeningSocket(at: address, options: options) { _, event in
      guard case .accepted(let socket) = event else { return }
      socket.handler = handler
      do { try RunLoop.current.add(socket, forMode: .default) } catch { Issue.record("\(error)") }
    }
    try add(listener, forMode: .default)
    return listener
  }

  /// Connects to an address.
  @discardableResult
  func connect(
    _ address: SocketAddress, options: Socket.Options = .init(), _ handler: @escaping Socket.Handler
  ) throws -> Socket {
    let socket = try Socket(connectingTo: address, options: options, handler: handler)
    try add(socket, forMode: .default)
    return socket
  }
}

extension Socket.Event {
  /// A short description of the event, with the bytes as text.
  var word: String {
    switch self {
    case .connected: "connected"
    case .received(let bytes): "received(\(text(bytes)))"
    case .readable: "readable"
    case .writable: "writable"
    case .ended: "ended"
    case .closed(nil): "closed"
    case .closed(.system(let error, _)?): "closed(\(error.call):\(error.number))"
    case .closed(let error?): "closed(\(error))"
    }
  }
}

/// Returns a short description of the error that a body throws.
func socketFailure(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "nothing"
  } catch SocketError.system(let error, _) {
    return "\(error.call):\(error.number)"
  } catch SocketError.descriptor(let number, let error) {
    return "\(number) \(error.call):\(error.number)"
  } catch {
    return "\(error)"
  }
}

/// Creates a connected pair of stream sockets, which the test owns until it passes them on.
func socketPair() throws -> (Int32, Int32) {
  var ends: [Int32] = [0, 0]
  try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
  return (ends[0], ends[1])
}

/// Returns an unused path for a Unix socket.
func socketPath() -> String { "/tmp/run-loop-socket-\(getpid())-\(UInt32.random(in: 0...(.max)))" }

/// An address of every kind that this machine can listen on.
let socketKinds: [String] = ["127.0.0.1:0", "[::1]:0", "unix", "unix:@"]

func socketAddress(_ kind: String) throws -> SocketAddress {
  switch kind {
  case "unix": try SocketAddress(path: socketPath())
  case "unix:@": try SocketAddress(abstractName: socketPath())
  default: try SocketAddress(kind)
  }
}

/// Returns an address of a kind that ends in ":0", on which nothing can listen while the descriptor is open.
///
/// Without the reservation another test could be assigned the port.
func refusingAddress(_ kind: String) throws -> (address: SocketAddress, descriptor: Int32) {
  let family = kind.hasPrefix("[") ? AF_INET6 : AF_INET
  let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  let isBound = try socketAddress(kind).withBytes { bytes, length in
    bind(descriptor, bytes?.assumingMemoryBound(to: sockaddr.self), length) == 0
  }
  try #require(isBound)
  var name = sockaddr_in6()
  var length = UInt32(MemoryLayout<sockaddr_in6>.size)
  let hasName = withUnsafeMutablePointer(to: &name) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
  }
  try #require(hasName)
  // The port has the same offset in both families.
  return (try SocketAddress(String(kind.dropLast(1)) + "\(UInt16(bigEndian: name.sin6_port))"), descriptor)
}

/// Listens on a loopback address of one family, and reserves the same port of the other family as long as the
/// descriptor is open.
func listenerWithoutTwin(isIPv6: Bool) throws -> (listener: ListeningSocket, descriptor: Int32) {
  while true {
    let (address, descriptor) = try refusingAddress(isIPv6 ? "127.0.0.1:0" : "[::1]:0")
    let port = try #require(address.port)
    let twin = SocketAddress.loopback(port: port, family: isIPv6 ? .ipv6 : .ipv4)
    if let listener = try? ListeningSocket(at: twin) { return (listener, descriptor) }
    // Another process uses the port there.
    close(descriptor)
  }
}

/// Closes an end so that the peer is notified immediately.
///
/// Parallel tests start processes, and such a child holds copies of all descriptors until it has executed its
/// program.
func hangUp(_ descriptor: Int32) {
  shutdown(descriptor, Int32(SHUT_RDWR))
  close(descriptor)
}

/// Waits for the other end of a Unix socket to close, which may be delayed by a child that holds a copy.
func awaitPeerClosed(_ descriptor: Int32) -> Bool {
  // POLLRDHUP, which the C library declares only for GNU C.
  var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
  return poll(&entry, 1, 60_000) == 1 && isPeerClosed(descriptor)
}

/// Whether the other end of a Unix socket is closed.
func isPeerClosed(_ descriptor: Int32) -> Bool {
  var byte: UInt8 = 0
  return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT) | Int32(MSG_PEEK)) == 0
}

/// The received bytes as text.
func text(_ bytes: RawSpan) -> String { bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }

/// Starts a program that ignores SIGTERM, and waits until it does.
func startedDeafProgram() throws -> SpawnedProcess {
  var options = SpawnedProcess.Options()
  options.standardOutput = .pipe
  let spawned = try SpawnedProcess("/bin/sh", ["-c", "trap '' TERM; echo ready; exec sleep 1000"], options: options)
  let output = try #require(spawned.standardOutput)
  output.open()
  while output.readText() == "nil" {}
  return spawned
}
