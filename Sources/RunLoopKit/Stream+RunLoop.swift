// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

// Streams on our loops. Foundation on Linux ignores the loop: it never calls a stream's delegate.
extension Stream {
  /// Makes a loop call the stream's delegate, on the loop's thread, whenever it runs in a mode.
  ///
  /// The delegate is notified of the opening, and then, once in a pass, of bytes, until it has read them all; of space,
  /// again when it has written since; of the end, or of an error. Without a delegate only the events that end the
  /// stream are reported, and a delegate that is set later is notified from the opening on. Changes that are made
  /// outside the delegate, such as by `open()`, are noticed when the loop makes a pass or is about to wait. A scheduled
  /// stream keeps the loop alive and is held by it until it is closed, has reported its end or an error, or is removed.
  ///
  /// The stream itself reports whether there are bytes. For a pipe, a terminal or anything else that can be empty and
  /// is not at its end, Foundation on Linux always reports bytes, so a delegate that reads then stops the loop until
  /// some arrive: pass the descriptor to a `RunLoop.DescriptorSource` instead. A subclass of your own that conforms to
  /// ``WatchedStream`` says what to wait for.
  ///
  /// Can be called from any thread that may use the stream. Write the loop's name, `RunLoop.current`: a mere `.current`
  /// is Foundation's loop.
  ///
  /// A subclass cannot override it. It overrides Foundation's method, which takes a `Foundation.RunLoop`, and which our
  /// loops do not call.
  ///
  /// The corresponding Foundation method is `schedule(in:forMode:)`.
  @_disfavoredOverload
  public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {  // An override takes Foundation.RunLoop.
    StreamWatch.schedule(self, in: loop, mode)
  }

  /// Takes the stream out of a mode of a loop.
  ///
  /// The corresponding Foundation method is `remove(from:forMode:)`.
  @_disfavoredOverload
  public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {  // An override takes Foundation.RunLoop.
    StreamWatch.remove(self, from: loop, mode)
  }
}
