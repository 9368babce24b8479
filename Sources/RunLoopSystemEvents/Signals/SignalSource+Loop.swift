// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension SignalSource: RunLoopItem {
  /// Adds the source to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// The source continues to count signals while it is in no mode.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode, `RunLoopError.invalidSource`, and `RunLoopError.loopHasEnded`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
}

extension SignalSource {
  /// Returns a signal's events as an asynchronous sequence, served by a loop.
  ///
  /// Signals that arrive while the buffer is full are added to the count of its last event. Can be called from any
  /// thread.
  ///
  /// - Parameters:
  ///   - signal: The signal number.
  ///   - loop: A running loop. The sequence ends with its thread.
  ///   - mode: A mode that the loop runs in.
  ///   - bufferSize: The maximum number of buffered events, at least one; 16 by default.
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
