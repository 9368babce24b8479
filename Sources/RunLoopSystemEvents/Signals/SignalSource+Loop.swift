// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension RunLoop {
  /// Adds a signal source to a mode, or, for `RunLoop.Mode.common`, to every common mode, present and future.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode; `RunLoopError.invalidSource`, `RunLoopError.loopHasEnded`.
  public func add(_ source: SignalSource, forMode mode: Mode) throws(RunLoopError) { try register(source, mode) }

  /// Removes a signal source from a mode, or, for `RunLoop.Mode.common`, a common source from every common mode.
  ///
  /// It goes on counting. Can be called from any thread.
  public func remove(_ source: SignalSource, forMode mode: Mode) { unregister(source, mode) }

  /// Whether a signal source is in a mode, or, for `RunLoop.Mode.common`, among the common items.
  ///
  /// Can be called from any thread.
  public func contains(_ source: SignalSource, forMode mode: Mode) -> Bool { isRegistered(source, mode) }
}

extension SignalSource {
  /// Returns a signal's events as an asynchronous sequence, with a loop to serve them.
  ///
  /// Signals that arrive when the buffer is full are counted in the last event of the buffer. Can be called from any
  /// thread.
  ///
  /// - Parameters:
  ///   - signal: The signal's number.
  ///   - loop: A loop that runs; the sequence ends with its thread.
  ///   - mode: The mode that the loop runs in.
  ///   - bufferSize: The most events that wait, at least one.
  /// - Throws: A ``SignalError``, or a `RunLoopError`.
  public static func events(
    of signal: Int32, on loop: RunLoop, forMode mode: RunLoop.Mode = .common, bufferSize: Int = 16
  ) throws -> EventSequence<Event> {
    let buffer = EventBuffer<Event>(capacity: bufferSize) { last, next in
      let count = last.count + next.count
      last = next
      last.count = count
    }
    let source = try SignalSource(signal, endsWithLoop: true) { [producer = EventProducer(buffer)] _, event in
      producer.send(event)
    }
    try loop.add(source, forMode: mode)
    return EventSequence(buffer) { source.invalidate() }
  }
}
