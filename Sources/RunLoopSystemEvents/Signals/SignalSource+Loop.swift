// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension SignalSource: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// It continues to count while it is in no mode.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode; `RunLoopError.invalidSource`, `RunLoopError.loopHasEnded`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
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
