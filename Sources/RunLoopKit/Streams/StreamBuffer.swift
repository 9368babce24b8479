// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopLibC

/// A queue of bytes.
struct StreamBytes {
  private var bytes: [UInt8] = []
  private var start = 0

  var count: Int { bytes.count - start }

  mutating func put(_ more: UnsafeRawBufferPointer) {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes.append(contentsOf: more)
  }

  /// Removes up to `limit` bytes and returns their number.
  mutating func take(_ buffer: UnsafeMutablePointer<UInt8>, _ limit: Int) -> Int {
    let taken = min(limit, count)
    bytes.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { buffer.update(from: base + start, count: taken) }
    }
    start += taken
    if start == bytes.count {
      bytes.removeAll(keepingCapacity: true)
      start = 0
    }
    return taken
  }
}

/// The buffer between two bound streams.
final class StreamBuffer: StreamTransport, @unchecked Sendable {
  // Sendable: the condition's lock guards the variables, as in the superclass.

  private let capacity: Int
  private var bytes = StreamBytes()
  private var isWriterClosed = false
  private var isReaderClosed = false

  init(capacity: Int) { self.capacity = max(1, capacity) }

  override func sight(_ side: StreamSide) -> StreamSight {
    condition.withLock {
      switch side {
      case .reading: bytes.count == 0 && isWriterClosed ? .atEnd : .open
      case .writing: isReaderClosed ? .failed(systemError(EPIPE)) : .open
      }
    }
  }

  override func isReady(_ side: StreamSide) -> Bool {
    condition.withLock { side == .reading ? bytes.count > 0 : bytes.count < capacity }
  }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, _ limit: Int) -> Int {
    change(for: [.writing]) {
      while bytes.count == 0, !isWriterClosed { condition.wait() }
      return bytes.take(buffer, limit)
    }
  }

  override func write(_ buffer: UnsafePointer<UInt8>, _ count: Int) throws -> Int {
    let taken: Int? = change(for: [.reading]) {
      while bytes.count >= capacity, !isReaderClosed { condition.wait() }
      guard !isReaderClosed else { return nil }
      let taken = min(count, capacity - bytes.count)
      bytes.put(UnsafeRawBufferPointer(start: buffer, count: taken))
      return taken
    }
    guard let taken else { throw systemError(EPIPE) }
    return taken
  }

  override func close(_ side: StreamSide) {
    switch side {
    case .reading: change(for: [.writing]) { isReaderClosed = true }
    case .writing: change(for: [.reading]) { isWriterClosed = true }
    }
  }

  override func released(_ side: StreamSide) { close(side) }
}
