// SPDX-License-Identifier: Apache-2.0

import Foundation

/// One of the two streams of a pair: its life, whichever it is.
final class StreamEnd {
  private enum Life {
    case notOpen
    case open
    case atEnd
    case failed(any Error)
    case closed
  }

  private let transport: StreamTransport
  private let side: StreamSide
  private var life = Life.notOpen
  private(set) var transferCount = 0
  weak var listener: (any StreamDelegate)?

  init(_ transport: StreamTransport, _ side: StreamSide) {
    self.transport = transport
    self.side = side
  }

  deinit {
    if case .closed = life { return }
    transport.released(side)
  }

  private var isOpen: Bool { if case .open = life { true } else { false } }

  var status: Stream.Status {
    switch life {
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
      life = .atEnd
      return .atEnd
    case .failed: return .error
    }
  }

  var error: (any Error)? {
    switch life {
    case .failed(let error): return error
    case .open: if case .failed(let error) = transport.sight(side) { return error } else { return nil }
    case .notOpen, .atEnd, .closed: return nil
    }
  }

  var isReady: Bool { isOpen && transport.isReady(side) }
  var descriptor: Int32? { isOpen ? transport.descriptor(side) : nil }

  func open() {
    guard case .notOpen = life else { return }
    life = .open
    transport.open()
  }

  func close() {
    let before = life
    life = .closed
    switch before {
    case .closed: break
    case .notOpen, .failed: transport.released(side)
    case .open, .atEnd: transport.close(side)
    }
  }

  func read(_ bytes: UnsafeMutablePointer<UInt8>, _ limit: Int) -> Int {
    transfer(limit) {
      let count = try transport.read(bytes, limit)
      if count == 0 { life = .atEnd }
      return count
    }
  }

  func write(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Int {
    transfer(count) { try transport.write(bytes, count) }
  }

  private func transfer(_ limit: Int, _ body: () throws -> Int) -> Int {
    transferCount += 1
    if case .atEnd = life { return 0 }
    guard isOpen, limit > 0 else { return isOpen ? 0 : -1 }
    do { return try body() } catch {
      life = .failed(error)
      return -1
    }
  }

  func property(_ key: Stream.PropertyKey) -> AnyObject? { transport.property(key) }
  func setProperty(_ property: AnyObject?, _ key: Stream.PropertyKey) -> Bool { transport.setProperty(property, key) }
}

/// The stream of a pair that reads.
///
/// Foundation's part of it is an empty stream that nobody uses.
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

/// The stream of a pair that writes.
final class PairedOutputStream: OutputStream, WatchedStream {
  private var held: StreamEnd?

  static func make(_ transport: StreamTransport) -> PairedOutputStream {
    // The initializer that Foundation requires has no room for more.
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
