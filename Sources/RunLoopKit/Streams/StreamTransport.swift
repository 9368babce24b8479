// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Which of the two streams of a pair.
enum StreamSide {
  case reading
  case writing
}

/// Where a stream is that was opened, as far as its other end decides that.
enum StreamSight {
  case opening
  case open
  case atEnd
  case failed(any Error)
}

/// What the two streams of a pair share: a buffer in memory, or a connection.
///
/// Its methods can be called from any thread. A stream that reads or writes waits on the condition, which subclasses
/// lock for whatever they change.
class StreamTransport: @unchecked Sendable {
  // Sendable: what changes is guarded by the condition's lock; the streams are held weakly, and only asked to look.

  let condition = NSCondition()
  private weak var input: PairedInputStream?
  private weak var output: PairedOutputStream?

  final func attach(_ stream: PairedInputStream) { condition.withLock { input = stream } }
  final func attach(_ stream: PairedOutputStream) { condition.withLock { output = stream } }

  /// Changes something, and has whoever may wait for that look at it: threads, and the loops of these streams.
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

  // MARK: - For subclasses

  /// One of the streams is opened.
  func open() {}

  /// Where a stream is that was opened.
  func sight(_ side: StreamSide) -> StreamSight { fatalError("\(type(of: self)) does not say where its streams are") }

  /// Whether an open stream can be read, or written, without waiting.
  func isReady(_ side: StreamSide) -> Bool { false }

  /// What a loop can wait for on a stream's behalf; nil if the stream itself knows whether it is ready.
  func descriptor(_ side: StreamSide) -> Int32? { nil }

  /// Takes bytes; waits for some, or for the end, which is zero.
  func read(_ bytes: UnsafeMutablePointer<UInt8>, _ limit: Int) throws -> Int {
    fatalError("\(type(of: self)) cannot be read")
  }

  /// Puts bytes; waits for space.
  func write(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws -> Int {
    fatalError("\(type(of: self)) cannot be written")
  }

  /// A stream that was opened is closed.
  func close(_ side: StreamSide) {}

  /// A stream is released that was not closed.
  func released(_ side: StreamSide) {}

  func property(_ key: Stream.PropertyKey) -> AnyObject? { nil }

  /// Sets a property; false: there is none, or it has another kind of value.
  func setProperty(_ property: AnyObject?, _ key: Stream.PropertyKey) -> Bool { false }

  final func systemError(_ number: Int32) -> any Error { NSError(domain: NSPOSIXErrorDomain, code: Int(number)) }
}
