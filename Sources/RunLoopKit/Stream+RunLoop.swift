// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

// Streams on our loops. Foundation on Linux ignores the loop: it never calls a stream's delegate.
extension Stream {
  /// Has the stream's delegate called on a loop's thread, whenever the loop runs in a mode.
  ///
  /// The delegate is notified of the opening, and then, once in a pass, that there are bytes, until it has read them
  /// all; that there is space, again when it has written since; of the end, or of an error. Without a delegate nothing
  /// is reported but what ends the stream, and a delegate that comes later is notified from the opening on. What is
  /// done outside the delegate, such as `open()`, is noticed when the loop makes a pass or is about to wait. A
  /// scheduled stream keeps the loop alive and is held by it until it is closed, has reported its end or an error, or
  /// is removed.
  ///
  /// The stream itself says whether there are bytes. Of a pipe, a terminal or whatever else can be empty and is not
  /// over, Foundation on Linux always says yes, so that a delegate which reads then stops the loop until some come:
  /// give the descriptor to a `RunLoop.DescriptorSource` instead. A subclass of your own that conforms to
  /// ``WatchedStream`` says what to wait for.
  ///
  /// Can be called from any thread that may use the stream. Write the loop's name, `RunLoop.current`: a mere `.current`
  /// is Foundation's loop.
  ///
  /// The corresponding Foundation method is `schedule(in:forMode:)`.
  @_disfavoredOverload
  public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
    StreamWatch.schedule(self, in: loop, mode)
  }

  /// Takes the stream out of a mode of a loop.
  ///
  /// The corresponding Foundation method is `remove(from:forMode:)`.
  @_disfavoredOverload
  public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
    StreamWatch.remove(self, from: loop, mode)
  }
}
