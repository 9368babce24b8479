// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

// Streams on our loops. Foundation on Linux ignores the loop and never calls a stream's delegate.
extension Stream {
  /// Makes a loop call the stream's delegate on the loop's thread whenever it runs in a mode.
  ///
  /// The delegate is notified that the stream has opened. After that, it is notified at most once per pass: of
  /// available bytes until it has read them all, of available space whenever it has written since, and of the end or
  /// an error. Without a delegate, only the events that end the stream are handled; a delegate that is set later
  /// receives all events from the opening on. Changes made outside the delegate, such as by `open()`, are noticed when
  /// the loop makes a pass or is about to wait. A scheduled stream keeps the loop alive, and is retained by it until
  /// it is closed, has reported its end or an error, or is removed.
  ///
  /// The stream itself reports whether bytes are available. For a pipe, a terminal, or anything else that can be empty
  /// without being at its end, Foundation on Linux always reports that they are, so a delegate that reads blocks the
  /// loop until some arrive. Use a `RunLoop.DescriptorSource` with the descriptor instead. Your own subclass can
  /// conform to ``WatchedStream`` to define what to wait for.
  ///
  /// Can be called from any thread that may use the stream. Write the name of the loop in full, as in
  /// `RunLoop.current`: `.current` alone is Foundation's loop.
  ///
  /// Subclasses cannot override this method. They can override Foundation's method, which takes a `Foundation.RunLoop`
  /// and which our loops do not call. The corresponding Foundation method is `schedule(in:forMode:)`.
  @_disfavoredOverload
  public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {  // An override takes Foundation.RunLoop.
    StreamWatch.schedule(self, in: loop, mode)
  }

  /// Removes the stream from a mode of a loop.
  ///
  /// The corresponding Foundation method is `remove(from:forMode:)`.
  @_disfavoredOverload
  public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {  // An override takes Foundation.RunLoop.
    StreamWatch.remove(self, from: loop, mode)
  }
}
