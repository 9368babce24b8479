// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension ChildProcessSource: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// A child that has ended already is reaped by the next pass.
  ///
  /// - Throws: The errors of a descriptor source: `RunLoopError.cannotWatch` if the system has no descriptor left for
  ///   the mode; `RunLoopError.invalidSource`, `RunLoopError.loopHasEnded`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
}

extension ChildProcessSource {
  /// Returns the end of a child as an asynchronous sequence of one element, with a loop to serve it.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - process: A child of this process that has not been reaped yet.
  ///   - leavesStatus: Whether the child is left to be reaped by other code, which has to do so.
  ///   - loop: A loop that runs; the sequence ends with its thread.
  ///   - mode: The mode that the loop runs in.
  /// - Throws: A ``ChildProcessError``, or a `RunLoopError`.
  public static func events(
    of process: Int32, leavesStatus: Bool = false, on loop: RunLoop, forMode mode: RunLoop.Mode = .common
  ) throws -> EventSequence<End> {
    try events(of: ChildProcess.find(process), leavesStatus: leavesStatus, on: loop, forMode: mode)
  }

  /// The same for a child that is known.
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
