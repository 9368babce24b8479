// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore

/// The buffer between two bound streams.
final class StreamBuffer: @unchecked Sendable {
  // Sendable: what changes is guarded by the condition's lock; the streams are held weakly, and only asked to look.

  private let capacity: Int
  private let condition = NSCondition()
  private var bytes: [UInt8] = []
  private var start = 0
  private var isWriterClosed = false
  private var isReaderClosed = false
  private weak var input: BoundInputStream?
  private weak var output: BoundOutputStream?

  init(capacity: Int) { self.capacity = max(1, capacity) }

  func attach(_ stream: BoundInputStream) { condition.withLock { input = stream } }
  func attach(_ stream: BoundOutputStream) { condition.withLock { output = stream } }

  private var count: Int { bytes.count - start }

  /// Whether there are bytes, and whether there will be more.
  var reading: (hasBytes: Bool, isAtEnd: Bool) { condition.withLock { (count > 0, count == 0 && isWriterClosed) } }

  /// Whether there is space, and whether somebody reads.
  var writing: (hasSpace: Bool, isBroken: Bool) { condition.withLock { (count < capacity, isReaderClosed) } }

  /// Takes bytes; waits for some, or for the end, which is zero.
  func read(_ buffer: UnsafeMutablePointer<UInt8>, _ limit: Int) -> Int {
    condition.lock()
    while count == 0, !isWriterClosed { condition.wait() }
    let taken = min(limit, count)
    bytes.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { buffer.update(from: base + start, count: taken) }
    }
    start += taken
    if start == bytes.count {
      bytes.removeAll(keepingCapacity: true)
      start = 0
    }
    condition.broadcast()
    let stream = output
    condition.unlock()
    stream?.reportChange()
    return taken
  }

  /// Puts bytes; waits for space; nil: nobody reads.
  func write(_ buffer: UnsafePointer<UInt8>, _ limit: Int) -> Int? {
    condition.lock()
    while count == capacity, !isReaderClosed { condition.wait() }
    guard !isReaderClosed else {
      condition.unlock()
      return nil
    }
    let taken = min(limit, capacity - count)
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes.append(contentsOf: UnsafeBufferPointer(start: buffer, count: taken))
    condition.broadcast()
    let stream = input
    condition.unlock()
    stream?.reportChange()
    return taken
  }

  func closeReader() {
    condition.lock()
    isReaderClosed = true
    condition.broadcast()
    let stream = output
    condition.unlock()
    stream?.reportChange()
  }

  func closeWriter() {
    condition.lock()
    isWriterClosed = true
    condition.broadcast()
    let stream = input
    condition.unlock()
    stream?.reportChange()
  }
}

/// Reads what is written to the other.
final class BoundInputStream: InputStream, WatchedStream {
  private let buffer: StreamBuffer
  private var life = Status.notOpen
  private(set) var transferCount = 0
  private weak var listener: (any StreamDelegate)?

  init(_ buffer: StreamBuffer) {
    self.buffer = buffer
    super.init(data: Data())
    buffer.attach(self)
  }

  deinit { buffer.closeReader() }

  override var delegate: (any StreamDelegate)? {
    get { listener }
    set { listener = newValue }
  }

  override var streamStatus: Status { life == .open && buffer.reading.isAtEnd ? .atEnd : life }
  override var streamError: (any Error)? { nil }
  override var hasBytesAvailable: Bool { life == .open && buffer.reading.hasBytes }
  override func open() { if life == .notOpen { life = .open } }

  override func close() {
    guard life != .closed else { return }
    life = .closed
    buffer.closeReader()
  }

  override func read(_ bytes: UnsafeMutablePointer<UInt8>, maxLength count: Int) -> Int {
    transferCount += 1
    guard life == .open else { return -1 }
    return count > 0 ? buffer.read(bytes, count) : 0
  }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  override func property(forKey key: PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }
}

/// Writes what the other reads.
final class BoundOutputStream: OutputStream, WatchedStream {
  private var shared: StreamBuffer?
  private var life = Status.notOpen
  private(set) var transferCount = 0
  private weak var listener: (any StreamDelegate)?

  static func make(_ buffer: StreamBuffer) -> BoundOutputStream {
    let stream = BoundOutputStream(toMemory: ())
    stream.shared = buffer
    buffer.attach(stream)
    return stream
  }

  deinit { shared?.closeWriter() }

  private var buffer: StreamBuffer {
    guard let shared else { fatalError("a bound stream has no buffer: it was not made by getBoundStreams") }
    return shared
  }

  override var delegate: (any StreamDelegate)? {
    get { listener }
    set { listener = newValue }
  }

  override var streamStatus: Status { life == .open && buffer.writing.isBroken ? .error : life }

  override var streamError: (any Error)? {
    streamStatus == .error ? StreamConnection.error(EPIPE) : nil
  }

  override var hasSpaceAvailable: Bool { life == .open && buffer.writing.hasSpace }
  override func open() { if life == .notOpen { life = .open } }

  override func close() {
    guard life != .closed else { return }
    life = .closed
    buffer.closeWriter()
  }

  override func write(_ bytes: UnsafePointer<UInt8>, maxLength count: Int) -> Int {
    transferCount += 1
    guard life == .open else { return -1 }
    guard count > 0 else { return 0 }
    return buffer.write(bytes, count) ?? -1
  }

  override func property(forKey key: PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }
}
