// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The side of a stream in a pair.
enum StreamSide {
  case reading
  case writing
}

/// The state of an opened stream, as far as the other end determines it.
enum StreamSight {
  case opening
  case open
  case atEnd
  case failed(any Error)
}

/// The shared part of two paired streams: a buffer in memory, or a connection.
///
/// Its methods can be called from any thread. Reading and writing wait on the condition, which subclasses lock to make
/// changes.
class StreamTransport: @unchecked Sendable {
  // Sendable: the condition's lock guards the variables. The streams are weak, and are only asked to check for changes.

  let condition = NSCondition()
  private weak var input: PairedInputStream?
  private weak var output: PairedOutputStream?

  final func attach(_ stream: PairedInputStream) { condition.withLock { input = stream } }
  final func attach(_ stream: PairedOutputStream) { condition.withLock { output = stream } }

  /// Makes a change, and notifies everything that may wait for it: threads, and the loops of these streams.
  final func change<Result>(for sides: [StreamSide] = [.reading, .writing], _ body: () -> Result) -> Result {
    condition.lock()
    let result = body()
    condition.broadcast()
    let reader = sides.contains(.reading) ? input : nil
    let writer = sides.contains(.writing) ? output : nil
    condition.unlock()
    reader?.reportChange()
    writer?.reportChange()
    return result
  }

  // MARK: - Methods to override

  /// Called when one of the streams is opened.
  func open() {}

  /// Returns the state of an opened stream.
  func sight(_ side: StreamSide) -> StreamSight { fatalError("\(type(of: self)) does not say where its streams are") }

  /// Whether an open stream can be read or written without blocking.
  func isReady(_ side: StreamSide) -> Bool { false }

  /// Returns a descriptor that a loop can watch for a stream, or nil if the stream itself knows whether it is ready.
  func descriptor(_ side: StreamSide) -> Int32? { nil }

  /// Reads bytes, and blocks until there are some or the end is reached, which returns 0.
  func read(_ bytes: UnsafeMutablePointer<UInt8>, _ limit: Int) throws -> Int {
    fatalError("\(type(of: self)) cannot be read")
  }

  /// Writes bytes, and blocks until there is space.
  func write(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws -> Int {
    fatalError("\(type(of: self)) cannot be written")
  }

  /// Called when an opened stream is closed.
  func close(_ side: StreamSide) {}

  /// Called when a stream is released without being closed.
  func released(_ side: StreamSide) {}

  func property(_ key: Stream.PropertyKey) -> AnyObject? { nil }

  /// Sets a property, or returns false if it does not exist or has another type of value.
  func setProperty(_ property: AnyObject?, _ key: Stream.PropertyKey) -> Bool { false }

  final func systemError(_ number: Int32) -> any Error { NSError(domain: NSPOSIXErrorDomain, code: Int(number)) }
}
