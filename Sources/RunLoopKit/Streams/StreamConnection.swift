// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Foundation
import RunLoopLibC
import RunLoopCore
import RunLoopSockets
import RunLoopThreads

/// The connection that two streams share.
final class StreamConnection: StreamTransport, @unchecked Sendable {
  // Sendable: the condition's lock guards the variables, as in the superclass.

  private enum State {
    case idle
    case connecting
    /// The streams read and write the descriptor directly, on any threads.
    case connected(Int32)
    case secured(SecuredLink)
    case failed(any Error)
  }

  private let host: String
  private let port: Int
  private var state = State.idle
  private var attempt: HostConnection?
  private var security = StreamSecurity()
  private var isWriterClosed = false

  init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  deinit {
    attempt?.cancel()
    switch state {
    case .connected(let descriptor): RunLoopLibC.close(descriptor)
    case .secured(let link): link.end()
    case .idle, .connecting, .failed: break
    }
  }

  /// The loop that connects, and that serves secured connections.
  private static var loop: RunLoop { ResidentThread.shared("streams").runLoop }

  override func open() {
    condition.lock()
    guard case .idle = state else { return condition.unlock() }
    do {
      _ = try security.context()
      guard let number = UInt16(exactly: port) else { throw SocketAddressError.notAPort("\(port)") }
      state = .connecting
      condition.unlock()
      let attempt = Socket.connect(toHost: host, port: number, on: Self.loop, inModes: [.common]) {
        [weak self] result in
        self?.finish(result)
      }
      condition.withLock { if case .connecting = state { self.attempt = attempt } }
    } catch {
      state = .failed(error)
      condition.unlock()
    }
  }

  private func finish(_ result: Result<Socket, HostConnectionError>) {
    change {
      attempt = nil
      switch result {
      case .success(let socket):
        let copy = socket.withDescriptor { fcntl($0, F_DUPFD_CLOEXEC, 3) } ?? -1
        state = copy >= 0 ? .connected(copy) : .failed(systemError(errno))
        socket.invalidate()
        secureIfWanted()
        if isWriterClosed, case .connected(let descriptor) = state { shutdown(descriptor, Int32(SHUT_WR)) }
      case .failure(let error): state = .failed(error)
      }
    }
  }

  // MARK: - Called by the streams

  override func sight(_ side: StreamSide) -> StreamSight {
    condition.withLock {
      switch state {
      case .idle, .connecting: return .opening
      case .failed(let error): return .failed(error)
      case .secured(let link): return link.sight(side)
      case .connected(let descriptor):
        guard side == .reading else { return .open }
        var byte: UInt8 = 0
        // The end is reported as such, instead of as zero available bytes.
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0 ? .atEnd : .open
      }
    }
  }

  override func isReady(_ side: StreamSide) -> Bool {
    condition.withLock {
      switch state {
      case .connected(let descriptor): Self.isReady(descriptor, side)
      case .secured(let link): link.isReady(side)
      case .idle, .connecting, .failed: false
      }
    }
  }

  override func descriptor(_ side: StreamSide) -> Int32? {
    condition.withLock { if case .connected(let descriptor) = state { descriptor } else { nil } }
  }

  private static func isReady(_ descriptor: Int32, _ side: StreamSide, waits: Bool = false) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(side == .reading ? POLLIN : POLLOUT), revents: 0)
    return poll(&entry, 1, waits ? -1 : 0) > 0
  }

  override func read(_ bytes: UnsafeMutablePointer<UInt8>, _ limit: Int) throws -> Int {
    try transfer(.reading) { descriptor in
      recv(descriptor, bytes, limit, Int32(MSG_DONTWAIT))
    } secured: { link in
      try link.take(bytes, limit)
    }
  }

  override func write(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws -> Int {
    try transfer(.writing) { descriptor in
      send(descriptor, bytes, count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    } secured: { link in
      try link.put(UnsafeRawBufferPointer(start: bytes, count: count))
    }
  }

  /// Reads or writes as soon as possible; `secured` returns nil if a secured connection is not ready.
  private func transfer(
    _ side: StreamSide, plain: (Int32) -> Int, secured: (SecuredLink) throws -> Int?
  ) throws -> Int {
    condition.lock()
    defer { condition.unlock() }
    while true {
      switch state {
      case .idle: throw systemError(ENOTCONN)
      case .failed(let error): throw error
      case .connecting: condition.wait()
      case .secured(let link):
        if let count = try secured(link) { return count }
        condition.wait()
      case .connected(let descriptor):
        let count = plain(descriptor)
        if count >= 0 { return count }
        let number = errno
        guard number == EAGAIN || number == EINTR else { throw systemError(number) }
        condition.unlock()
        if number == EAGAIN { _ = Self.isReady(descriptor, side, waits: true) }
        condition.lock()
      }
    }
  }

  override func close(_ side: StreamSide) {
    condition.withLock {
      guard side == .writing else { return }
      isWriterClosed = true
      switch state {
      // The peer sees the end of the data. A failed connection need not be shut down.
      case .connected(let descriptor): shutdown(descriptor, Int32(SHUT_WR))
      case .secured(let link): link.endWriting()
      case .idle, .connecting, .failed: break
      }
    }
  }

  // MARK: - Security

  override func property(_ key: Stream.PropertyKey) -> AnyObject? { condition.withLock { security.value(of: key) } }

  override func setProperty(_ property: AnyObject?, _ key: Stream.PropertyKey) -> Bool {
    change {
      if case .secured = state { return security.has(property, key) }
      let isSet = security.set(property, key)
      secureIfWanted()
      return isSet
    }
  }

  /// Secures an established connection if the properties request it.
  ///
  /// Requires the lock, and calls no user code.
  private func secureIfWanted() {
    guard case .connected(let descriptor) = state else { return }
    do {
      guard let context = try security.context() else { return }
      // The link owns the descriptor from here on.
      state = .connecting
      let link = try SecuredLink(
        descriptor, context, serverName: security.name(host: host), on: Self.loop, for: self)
      state = .secured(link)
      if isWriterClosed { link.endWriting() }
    } catch {
      if case .connected = state { RunLoopLibC.close(descriptor) }
      state = .failed(error)
    }
  }

  /// Changes the state of a secured connection.
  func changeLink(_ body: (SecuredLink) -> Void) { change { if case .secured(let link) = state { body(link) } } }
}
