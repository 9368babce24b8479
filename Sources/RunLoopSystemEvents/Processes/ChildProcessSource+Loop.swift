// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension ChildProcessSource: RunLoopItem {
  /// Adds the source to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// A child that has already ended is reaped in the next pass.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode, `RunLoopError.invalidSource`, and `RunLoopError.loopHasEnded`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
}

extension ChildProcessSource {
  /// Returns the end of a child as an asynchronous sequence of one element, served by a loop.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - process: The ID of a child of this process that has not been reaped yet.
  ///   - leavesStatus: Whether to leave the child for other code to reap, which must then do so. The default is false.
  ///   - loop: A running loop. The sequence ends with its thread.
  ///   - mode: A mode that the loop runs in.
  /// - Throws: A ``ChildProcessError``, or a `RunLoopError`.
  public static func events(
    of process: Int32, leavesStatus: Bool = false, on loop: RunLoop, forMode mode: RunLoop.Mode = .common
  ) throws -> EventSequence<End> {
    try events(of: ChildProcess.find(process), leavesStatus: leavesStatus, on: loop, forMode: mode)
  }

  /// Returns the end of a child as an asynchronous sequence of one element, served by a loop.
  package static func events(
    of child: ChildProcess, leavesStatus: Bool, on loop: RunLoop, forMode mode: RunLoop.Mode
  ) throws -> EventSequence<End> {
    let buffer = EventBuffer<End>(capacity: 1) { last, next in last = next }
    let source = ChildProcessSource(child, leavesStatus: leavesStatus, endsWithLoop: true) {
      [producer = EventProducer(buffer)] _, end in producer.send(end)
    }
    try loop.add(source, forMode: mode)
    return EventSequence(buffer) { source.invalidate() }
  }
}
