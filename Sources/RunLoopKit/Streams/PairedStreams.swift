// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore

/// The state of one of the two streams of a pair.
///
/// It is safe to query a stream on one thread while another thread uses it.
final class StreamEnd: @unchecked Sendable {
  // Sendable: the lock guards the variables, and is not held while the other end is queried.

  private enum Life {
    case notOpen
    case open
    case atEnd
    case failed(any Error)
    case closed
  }

  private let transport: StreamTransport
  private let side: StreamSide
  private let lock = Lock()
  private var life = Life.notOpen
  private var transfers = 0
  private weak var delegate: (any StreamDelegate)?

  init(_ transport: StreamTransport, _ side: StreamSide) {
    self.transport = transport
    self.side = side
  }

  deinit {
    if case .closed = life { return }
    transport.released(side)
  }

  var transferCount: Int { lock.withLock { transfers } }

  var listener: (any StreamDelegate)? {
    get { lock.withLock { delegate } }
    set { lock.withLock { delegate = newValue } }
  }

  private var isOpen: Bool { if case .open = lock.withLock({ life }) { true } else { false } }

  var status: Stream.Status {
    switch lock.withLock({ life }) {
    case .notOpen: return .notOpen
    case .atEnd: return .atEnd
    case .failed: return .error
    case .closed: return .closed
    case .open: break
    }
    switch transport.sight(side) {
    case .opening: return .opening
    case .open: return .open
    case .atEnd:
      leaveOpen(.atEnd)
      return .atEnd
    case .failed: return .error
    }
  }

  var error: (any Error)? {
    switch lock.withLock({ life }) {
    case .failed(let error): return error
    case .open: if case .failed(let error) = transport.sight(side) { return error } else { return nil }
    case .notOpen, .atEnd, .closed: return nil
    }
  }

  var isReady: Bool { isOpen && transport.isReady(side) }
  var descriptor: Int32? { isOpen ? transport.descriptor(side) : nil }

  func open() {
    let isFirst = lock.withLock {
      guard case .notOpen = life else { return false }
      life = .open
      return true
    }
    if isFirst { transport.open() }
  }

  func close() {
    let before = lock.withLock {
      defer { life = .closed }
      return life
    }
    switch before {
    case .closed: break
    case .notOpen, .failed: transport.released(side)
    case .open, .atEnd: transport.close(side)
    }
  }

  func read(_ bytes: UnsafeMutablePointer<UInt8>, _ limit: Int) -> Int {
    transfer(limit) {
      let count = try transport.read(bytes, limit)
      if count == 0 { leaveOpen(.atEnd) }
      return count
    }
  }

  func write(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Int {
    transfer(count) { try transport.write(bytes, count) }
  }

  private func transfer(_ limit: Int, _ body: () throws -> Int) -> Int {
    let before = lock.withLock {
      transfers += 1
      return life
    }
    switch before {
    case .atEnd: return 0
    case .open: break
    case .notOpen, .failed, .closed: return -1
    }
    guard limit > 0 else { return 0 }
    do { return try body() } catch {
      leaveOpen(.failed(error))
      return -1
    }
  }

  /// Changes the state if the stream is still open.
  private func leaveOpen(_ next: Life) { lock.withLock { if case .open = life { life = next } } }

  func property(_ key: Stream.PropertyKey) -> AnyObject? { transport.property(key) }
  func setProperty(_ property: AnyObject?, _ key: Stream.PropertyKey) -> Bool { transport.setProperty(property, key) }
}

/// The input stream of a pair.
///
/// The data of its superclass is empty and not used.
final class PairedInputStream: InputStream, WatchedStream {
  private let end: StreamEnd

  init(_ transport: StreamTransport) {
    end = StreamEnd(transport, .reading)
    super.init(data: Data())
    transport.attach(self)
  }

  override var delegate: (any StreamDelegate)? {
    get { end.listener }
    set { end.listener = newValue }
  }

  var transferCount: Int { end.transferCount }
  var watchedDescriptor: Int32? { end.descriptor }
  override var streamStatus: Status { end.status }
  override var streamError: (any Error)? { end.error }
  override var hasBytesAvailable: Bool { end.isReady }
  override func open() { end.open() }
  override func close() { end.close() }
  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int { end.read(buffer, maxLength) }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  override func property(forKey key: PropertyKey) -> AnyObject? { end.property(key) }

  override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { end.setProperty(property, key) }
}

final class PairedOutputStream: OutputStream, WatchedStream {
  private var held: StreamEnd?

  static func make(_ transport: StreamTransport) -> PairedOutputStream {
    // The initializer that Foundation requires cannot take further arguments.
    let stream = PairedOutputStream(toMemory: ())
    stream.held = StreamEnd(transport, .writing)
    transport.attach(stream)
    return stream
  }

  private var end: StreamEnd {
    guard let held else { fatalError("a stream of a pair was not made with its pair") }
    return held
  }

  override var delegate: (any StreamDelegate)? {
    get { end.listener }
    set { end.listener = newValue }
  }

  var transferCount: Int { end.transferCount }
  var watchedDescriptor: Int32? { end.descriptor }
  override var streamStatus: Status { end.status }
  override var streamError: (any Error)? { end.error }
  override var hasSpaceAvailable: Bool { end.isReady }
  override func open() { end.open() }
  override func close() { end.close() }
  override func write(_ buffer: UnsafePointer<UInt8>, maxLength: Int) -> Int { end.write(buffer, maxLength) }
  override func property(forKey key: PropertyKey) -> AnyObject? { end.property(key) }

  override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { end.setProperty(property, key) }
}
