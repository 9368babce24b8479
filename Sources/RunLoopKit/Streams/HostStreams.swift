// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import RunLoopPorts

/// Where one of the streams is in its life, beside the connection's.
enum StreamLife {
  case notOpen
  case open
  case atEnd
  case failed(any Error)
  case closed

  /// The status of a stream with a connection.
  func status(_ connection: StreamConnection) -> Stream.Status {
    switch self {
    case .notOpen: return .notOpen
    case .atEnd: return .atEnd
    case .failed: return .error
    case .closed: return .closed
    case .open: break
    }
    switch connection.state {
    case .idle, .connecting: return .opening
    case .connected: return .open
    case .failed: return .error
    }
  }

  func error(_ connection: StreamConnection) -> (any Error)? {
    switch (self, connection.state) {
    case (.failed(let error), _), (.open, .failed(let error)): error
    default: nil
    }
  }

  var isOpen: Bool { if case .open = self { true } else { false } }
}

/// What comes from a host.
///
/// Foundation's part of it is an empty stream that nobody uses.
final class HostInputStream: InputStream, WatchedStream {
  private let connection: StreamConnection
  private var life = StreamLife.notOpen
  private(set) var transferCount = 0
  private weak var listener: (any StreamDelegate)?

  init(_ connection: StreamConnection) {
    self.connection = connection
    super.init(data: Data())
    connection.attach(self)
  }

  override var delegate: (any StreamDelegate)? {
    get { listener }
    set { listener = newValue }
  }

  override var streamStatus: Status {
    let status = life.status(connection)
    guard status == .open, let descriptor = connection.connected else { return status }
    var byte: UInt8 = 0
    // The end is told as such, and not as bytes that are none.
    guard recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0 else { return status }
    life = .atEnd
    return .atEnd
  }

  override var streamError: (any Error)? { life.error(connection) }

  var watchedDescriptor: Int32? { life.isOpen ? connection.connected : nil }

  override var hasBytesAvailable: Bool {
    guard life.isOpen, let descriptor = connection.connected else { return false }
    return StreamConnection.isReady(descriptor, Int32(POLLIN))
  }

  override func open() {
    guard case .notOpen = life else { return }
    life = .open
    connection.open()
  }

  override func close() { life = .closed }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength count: Int) -> Int {
    transferCount += 1
    if case .atEnd = life { return 0 }
    guard life.isOpen, count > 0 else { return life.isOpen ? 0 : -1 }
    do {
      let descriptor = try connection.descriptor()
      while true {
        let answer = recv(descriptor, buffer, count, Int32(MSG_DONTWAIT))
        if answer == 0 { life = .atEnd }
        if answer >= 0 { return answer }
        if errno == EAGAIN {
          _ = StreamConnection.isReady(descriptor, Int32(POLLIN), waits: true)
        } else if errno != EINTR {
          throw StreamConnection.error(errno)
        }
      }
    } catch {
      life = .failed(error)
      return -1
    }
  }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  override func property(forKey key: PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }
}

/// What goes to a host.
final class HostOutputStream: OutputStream, WatchedStream {
  private var shared: StreamConnection?
  private var life = StreamLife.notOpen
  private(set) var transferCount = 0
  private weak var listener: (any StreamDelegate)?

  static func make(_ connection: StreamConnection) -> HostOutputStream {
    let stream = HostOutputStream(toMemory: ())
    stream.shared = connection
    connection.attach(stream)
    return stream
  }

  private var connection: StreamConnection {
    guard let shared else { fatalError("a stream to a host has no connection: it was not made by getStreamsToHost") }
    return shared
  }

  override var delegate: (any StreamDelegate)? {
    get { listener }
    set { listener = newValue }
  }

  override var streamStatus: Status { life.status(connection) }
  override var streamError: (any Error)? { life.error(connection) }
  var watchedDescriptor: Int32? { life.isOpen ? connection.connected : nil }

  override var hasSpaceAvailable: Bool {
    guard life.isOpen, let descriptor = connection.connected else { return false }
    return StreamConnection.isReady(descriptor, Int32(POLLOUT))
  }

  override func open() {
    guard case .notOpen = life else { return }
    life = .open
    connection.open()
  }

  override func close() {
    if case .closed = life { return }
    // The other end sees that nothing more comes; a connection that is lost need not be ended.
    if case .open = life, let descriptor = connection.connected { shutdown(descriptor, Int32(SHUT_WR)) }
    life = .closed
  }

  override func write(_ buffer: UnsafePointer<UInt8>, maxLength count: Int) -> Int {
    transferCount += 1
    guard life.isOpen else { return -1 }
    guard count > 0 else { return 0 }
    do {
      let descriptor = try connection.descriptor()
      while true {
        let answer = send(descriptor, buffer, count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        if answer >= 0 { return answer }
        if errno == EAGAIN {
          _ = StreamConnection.isReady(descriptor, Int32(POLLOUT), waits: true)
        } else if errno != EINTR {
          throw StreamConnection.error(errno)
        }
      }
    } catch {
      life = .failed(error)
      return -1
    }
  }

  override func property(forKey key: PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }
}
