// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

/// A subclass of `InputStream` or `OutputStream` that defines what a loop waits for.
///
/// A loop can check whether any stream is ready, but only while it makes passes. A stream that conforms to this
/// protocol can also wake the loop, with a descriptor that the loop watches or by calling ``reportChange()``.
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
/// The delegate is called in the same way as for Core Foundation's streams. `hasBytesAvailable` and
/// `hasSpaceAvailable` are each reported once until the stream is next read or written, which the loop detects by
/// ``transferCount``. A delegate that does neither has no cost, because the descriptor is not watched meanwhile.
///
/// The loop reads the properties on its own thread, in every pass and before it waits.
///
/// The corresponding Core Foundation types are `CFReadStreamCallBacks` and `CFWriteStreamCallBacks`.
public protocol WatchedStream: Stream {
  /// The number of times that the stream has been read or written, successfully or not.
  ///
  /// Count each call of `read(_:maxLength:)` or `write(_:maxLength:)`, or use any other value that changes with each
  /// of them. The delegate can be called again when the value has changed.
  var transferCount: Int { get }

  /// The descriptor that the loop watches, or `nil`, the default, if the stream itself determines whether it is ready.
  ///
  /// If it is `nil`, the loop checks `hasBytesAvailable` or `hasSpaceAvailable` instead. A stream with a buffer
  /// returns `nil` as long as the buffer contains bytes. If there is a descriptor, those two properties are not used,
  /// and the stream is ready when the descriptor is. A descriptor that the system cannot watch, such as one of a
  /// regular file, counts as ready.
  var watchedDescriptor: Int32? { get }

  /// The events that the loop watches for at the descriptor.
  ///
  /// The default is `.writable` for output streams and while the stream's status is `opening`, or else `.readable`.
  var watchedEvents: RunLoop.DescriptorSource.Events { get }
}

extension WatchedStream {
  /// Returns `nil`, so that the stream itself determines whether it is ready.
  public var watchedDescriptor: Int32? { nil }

  /// Returns `.writable` for an output stream or a stream that is being opened, and `.readable` otherwise.
  public var watchedEvents: RunLoop.DescriptorSource.Events {
    self is OutputStream || streamStatus == .opening ? .writable : .readable
  }

  /// Makes the loops in which the stream is scheduled check it.
  ///
  /// Call this method after a change that does not show at the descriptor: bytes have arrived in a buffer, it has
  /// space again, the other end was closed, or the status has changed. The loop then reads the properties, and calls
  /// the delegate if there is something to report. It has no effect on a stream that is not scheduled.
  ///
  /// Can be called from any thread.
  ///
  /// The corresponding Core Foundation functions are `CFReadStreamSignalEvent` and `CFWriteStreamSignalEvent`.
  public func reportChange() { StreamWatch.reportChange(of: self) }
}
