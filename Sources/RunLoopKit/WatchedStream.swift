// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

/// A subclass of `InputStream` or `OutputStream` that defines what a loop waits for.
///
/// A loop can ask any stream whether it is ready, but only while it makes passes. A stream that conforms to this
/// protocol also wakes the loop: with a descriptor, for which the loop waits, or by a call of ``reportChange()``.
///
/// ```swift
/// final class SocketInputStream: InputStream, WatchedStream {
///   private(set) var transferCount = 0
///   var watchedDescriptor: Int32? { socket }
///
///   override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength count: Int) -> Int {
///     transferCount += 1
///     // …
///   }
///   // …
/// }
/// ```
///
/// The delegate is called as Core Foundation's streams call it. `hasBytesAvailable` and `hasSpaceAvailable` are each
/// reported once until the stream is next read or written, which the loop notices by ``transferCount``. A delegate that
/// does neither costs nothing: meanwhile the descriptor is not watched.
///
/// The loop reads the properties on its own thread, in every pass and before it waits.
///
/// The corresponding Core Foundation types are `CFReadStreamCallBacks` and `CFWriteStreamCallBacks`.
public protocol WatchedStream: Stream {
  /// How many times the stream has been read, or written, successfully or not.
  ///
  /// Count each call of `read(_:maxLength:)` or `write(_:maxLength:)`, or anything else that changes with each of them.
  /// When the number has changed, the delegate can be called again.
  var transferCount: Int { get }

  /// The descriptor that the loop waits for; nil if the stream itself knows whether it is ready.
  ///
  /// While it is nil the loop asks for `hasBytesAvailable` or `hasSpaceAvailable` instead. A stream with a buffer
  /// returns nil as long as the buffer has bytes. While there is a descriptor those two properties are not asked: the
  /// stream is ready when the descriptor is. A descriptor that the system cannot wait for, such as one of a regular
  /// file, counts as ready.
  ///
  /// The default is nil.
  var watchedDescriptor: Int32? { get }

  /// What the loop waits for at the descriptor.
  ///
  /// The default is `.writable` for an output stream and while the stream's status is `opening`, and `.readable`
  /// otherwise.
  var watchedEvents: RunLoop.DescriptorSource.Events { get }
}

extension WatchedStream {
  /// By default it is nil: the stream itself knows whether it is ready.
  public var watchedDescriptor: Int32? { nil }

  /// By default it is writable for an output stream and for a stream that is being opened, and readable otherwise.
  public var watchedEvents: RunLoop.DescriptorSource.Events {
    self is OutputStream || streamStatus == .opening ? .writable : .readable
  }

  /// Makes the loops in which the stream is scheduled look at it.
  ///
  /// Call it when something has changed that no descriptor shows: bytes have arrived in a buffer, there is space in it
  /// again, the other end has closed, or the status has changed. The loop then reads the properties and calls the
  /// delegate if there is something to report. A stream that is not scheduled ignores it.
  ///
  /// Can be called from any thread.
  ///
  /// The corresponding Core Foundation functions are `CFReadStreamSignalEvent` and `CFWriteStreamSignalEvent`.
  public func reportChange() { StreamWatch.reportChange(of: self) }
}
