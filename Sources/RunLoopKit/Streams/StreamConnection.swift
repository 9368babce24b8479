// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Foundation
import Glibc
import RunLoopCore
import RunLoopPorts
import RunLoopThreads

/// The connection that two streams share.
final class StreamConnection: @unchecked Sendable {
  // Sendable: what changes is guarded by the condition's lock; the streams are held weakly, and only asked to look.

  enum State {
    case idle
    case connecting
    case connected(Int32)
    case failed(any Error)
  }

  private let host: String
  private let port: Int
  private let condition = NSCondition()
  private var current = State.idle
  private var attempt: HostConnection?
  private weak var input: HostInputStream?
  private weak var output: HostOutputStream?

  init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  deinit {
    attempt?.cancel()
    if case .connected(let descriptor) = current { close(descriptor) }
  }

  func attach(_ stream: HostInputStream) { condition.withLock { input = stream } }
  func attach(_ stream: HostOutputStream) { condition.withLock { output = stream } }

  var state: State { condition.withLock { current } }

  /// Begins to connect, if that was not done.
  func open() {
    condition.lock()
    guard case .idle = current else { return condition.unlock() }
    guard let number = UInt16(exactly: port) else {
      current = .failed(SocketAddressError.notAPort("\(port)"))
      return condition.unlock()
    }
    current = .connecting
    condition.unlock()
    let loop = ResidentThread.shared("streams").runLoop
    let attempt = Socket.connect(toHost: host, port: number, on: loop, inModes: [.common]) { [weak self] result in
      self?.finish(result)
    }
    condition.withLock { self.attempt = attempt }
  }

  private func finish(_ result: Result<Socket, HostConnectionError>) {
    let next: State
    switch result {
    case .success(let socket):
      // The streams read and write by themselves, on whatever threads they are.
      let copy = socket.withDescriptor { fcntl($0, F_DUPFD_CLOEXEC, 3) } ?? -1
      next = copy >= 0 ? .connected(copy) : .failed(Self.error(errno))
      socket.invalidate()
    case .failure(let error): next = .failed(error)
    }
    condition.lock()
    current = next
    attempt = nil
    let streams: (HostInputStream?, HostOutputStream?) = (input, output)
    condition.broadcast()
    condition.unlock()
    streams.0?.reportChange()
    streams.1?.reportChange()
  }

  /// The descriptor, when the connection is made; waits for that.
  func descriptor() throws -> Int32 {
    condition.lock()
    defer { condition.unlock() }
    while true {
      switch current {
      case .connected(let descriptor): return descriptor
      case .failed(let error): throw error
      case .idle: throw Self.error(ENOTCONN)
      case .connecting: condition.wait()
      }
    }
  }

  /// The descriptor, if the connection is made.
  var connected: Int32? {
    if case .connected(let descriptor) = state { return descriptor }
    return nil
  }

  static func error(_ number: Int32) -> any Error { NSError(domain: NSPOSIXErrorDomain, code: Int(number)) }

  /// Whether a descriptor is ready, which is waited for or not.
  static func isReady(_ descriptor: Int32, _ events: Int32, waits: Bool = false) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    return poll(&entry, 1, waits ? -1 : 0) > 0
  }
}
