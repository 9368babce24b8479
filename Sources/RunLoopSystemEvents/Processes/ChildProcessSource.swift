// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// A source that waits for a child process to end, and calls its handler with the way in which it ended.
///
/// It waits only for that child, so the rest of the program can wait for its own children. Any number of sources can
/// wait for the same child, each in any number of modes of any number of loops. The child is reaped once, and each
/// source is notified. If other code reaps the child, the sources end with ``ChildProcessError/reapedElsewhere(_:)``.
/// A source that is in no mode reaps nothing; its child stays a zombie until the source is added to a loop or other
/// code waits for the child.
///
/// A child that other code waits for, such as one of Foundation's `Process`, must be left to that code: create its
/// source with `leavesStatus`, so that it only reads the status.
///
/// The source is invalidated before it calls its handler, so the handler is called only once.
public final class ChildProcessSource: Sendable {
  /// The way in which the child ended, or the reason why it is unknown.
  public enum End: Hashable, Sendable {
    /// The child has ended with this status.
    case ended(ExitStatus)
    /// The status is unknown because other code has reaped the child or a system call has failed.
    case unknown(ChildProcessError)

    /// Returns the child's exit status.
    ///
    /// - Throws: The reason why the status is unknown.
    public func get() throws(ChildProcessError) -> ExitStatus {
      switch self {
      case .ended(let status): return status
      case .unknown(let error): throw error
      }
    }
  }

  /// The child's process ID.
  public let process: Int32

  let loopRegistration: LoopRegistration
  /// Whether the child is left for other code to reap.
  public let leavesStatus: Bool
  private let waiting: HandlerBox<Waiting>
  private let endsWithLoop: Bool

  /// The state of a source until it ends.
  private struct Waiting: Sendable {
    let child: ChildProcess
    let handler: @Sendable (ChildProcessSource, End) -> Void
  }

  private struct Call {
    let body: @Sendable (ChildProcessSource, End) -> Void
  }

  /// Creates a source that is in no mode.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - process: The ID of a child of this process that has not been reaped yet. The child may have ended.
  ///   - leavesStatus: Whether to leave the child for other code to reap, which must then do so; until then the child
  ///     stays a zombie. If it is reaped before the source has seen its status, the source ends with
  ///     ``ChildProcessError/reapedElsewhere(_:)``. The default is false.
  ///   - handler: Called once on a loop's thread. It is released when it has returned or the source is invalidated.
  /// - Throws: A ``ChildProcessError``.
  public convenience init(
    process: Int32, leavesStatus: Bool = false, handler: @escaping @Sendable (ChildProcessSource, End) -> Void
  ) throws(ChildProcessError) {
    try self.init(process, leavesStatus: leavesStatus, endsWithLoop: false, handler)
  }

  convenience init(
    _ process: Int32, leavesStatus: Bool, endsWithLoop: Bool,
    _ handler: @escaping @Sendable (ChildProcessSource, End) -> Void
  ) throws(ChildProcessError) {
    self.init(try ChildProcess.find(process), leavesStatus: leavesStatus, endsWithLoop: endsWithLoop, handler)
  }

  package init(
    _ child: ChildProcess, leavesStatus: Bool, endsWithLoop: Bool,
    _ handler: @escaping @Sendable (ChildProcessSource, End) -> Void
  ) {
    loopRegistration = LoopRegistration(child.descriptor)
    process = child.process
    self.leavesStatus = leavesStatus
    waiting = HandlerBox(Waiting(child: child, handler: handler))
    self.endsWithLoop = endsWithLoop
  }

  deinit {
    invalidate()
  }

  /// Whether the source is valid, so that it can be added to a loop and called.
  ///
  /// Can be used from any thread.
  public var isValid: Bool { loopRegistration.isOpen }

  /// Permanently invalidates the source: it leaves all modes of all loops and is not called again.
  ///
  /// The child continues. The handler is released at once, or when a running call-out has returned. Can be called from
  /// any thread. Calling it again has no effect.
  public func invalidate() {
    if loopRegistration.close() { waiting.take() }
  }
}

extension ChildProcessSource: RegisteredSource {
  func serve() {
    guard let child = waiting.held?.child else { return }
    // A debugger that traces the child gets the status first, possibly much later.
    guard let end = child.awaitEnd(leavesStatus: leavesStatus) else { return loopRegistration.rest() }
    guard let taken = waiting.take() else { return }
    _ = loopRegistration.close()
    noteCall(of: Call(body: taken.handler))
    taken.handler(self, end)
  }

  func hasLeft() { if endsWithLoop { invalidate() } }

  package var keepAliveKind: KeepAliveKind { .child }
  package var keepAliveDetail: String { "process \(process)" }
  package var keepAliveCode: UInt64 {
    guard let handler = waiting.held?.handler else { return 0 }
    return ClosureCode.first(of: Call(body: handler))
  }
}

extension ChildProcessSource: CustomDebugStringConvertible {
  /// The source's state, in the format of Core Foundation's descriptions.
  public var debugDescription: String { itemDescription(self, "process = \(process)") }
}

extension ChildProcessSource.End: CustomStringConvertible {
  /// A human-readable description, such as "exited with 0", or the reason why the status is unknown.
  public var description: String {
    switch self {
    case .ended(let status): "\(status)"
    case .unknown(let error): "\(error)"
    }
  }
}
