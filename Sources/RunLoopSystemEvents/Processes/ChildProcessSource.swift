// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// A source that waits for one child process to end, and calls its handler with how the child ended.
///
/// It waits for that child alone, and never touches another: the rest of the program may wait for its own. Any number
/// of sources may wait for one child, each in any number of modes of any number of loops; the child is reaped once, and
/// each source is notified how it ended. If other code reaps it, the sources end with
/// ``ChildProcessError/reapedElsewhere(_:)``. A source that is in no mode reaps nothing: its child stays a zombie until
/// the source is added, or other code waits for the child.
///
/// A child that other code waits for, such as one of Foundation's `Process`, must be left to be reaped: a source that
/// `leavesStatus` only looks how it ended.
///
/// The source calls its handler once, and is invalid when it does.
public final class ChildProcessSource: Sendable {
  /// How the child ended, or why that is not known.
  public enum End: Hashable, Sendable {
    /// The child has ended this way.
    case ended(ExitStatus)
    /// It is not known how: other code has reaped the child, or a system call has failed.
    case unknown(ChildProcessError)

    /// How the child has ended.
    ///
    /// - Throws: The reason why that is not known.
    public func get() throws(ChildProcessError) -> ExitStatus {
      switch self {
      case .ended(let status): return status
      case .unknown(let error): throw error
      }
    }
  }

  /// The child's process number.
  public let process: Int32

  let loopRegistration: LoopRegistration
  /// Whether the child is left to be reaped by other code.
  public let leavesStatus: Bool
  private let waiting: HandlerBox<Waiting>
  private let endsWithLoop: Bool

  /// What a source has until it ends.
  private struct Waiting: Sendable {
    let child: ChildProcess
    let handler: @Sendable (ChildProcessSource, End) -> Void
  }

  private struct Call {
    let body: @Sendable (ChildProcessSource, End) -> Void
  }

  /// Makes a source that is in no mode.
  ///
  /// - Parameters:
  ///   - process: A child of this process that has not been reaped yet; it may have ended.
  ///   - leavesStatus: Whether the child is left to be reaped by other code, which has to do so: until then it stays a
  ///     zombie. If that happens before the source has seen how the child ended, the source ends with
  ///     ``ChildProcessError/reapedElsewhere(_:)``.
  ///   - handler: Called on a loop's thread, once. It is released when it has returned, or when the source is invalid.
  /// - Throws: A ``ChildProcessError``.
  ///
  /// Can be called from any thread.
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

  /// Whether the source can still be added and called.
  ///
  /// Can be used from any thread.
  public var isValid: Bool { loopRegistration.isOpen }

  /// Ends the source permanently: it leaves all modes of all loops and is not called any more.
  ///
  /// The child goes on. The handler is released at once, or when its running call-out has returned. Can be called from
  /// any thread. Calling it again has no effect.
  public func invalidate() {
    if loopRegistration.close() { waiting.take() }
  }
}

extension ChildProcessSource: RegisteredSource {
  func serve() {
    guard let end = waiting.held?.child.awaitEnd(leavesStatus: leavesStatus), let taken = waiting.take() else { return }
    _ = loopRegistration.close()
    noteCall(of: Call(body: taken.handler))
    taken.handler(self, end)
  }

  func hasLeft() { if endsWithLoop { invalidate() } }

  package var keepAliveKind: KeepAliveKind { .child }
  package var keepAliveDetail: String { "process \(process)" }
  package var keepAliveCode: UInt64 {
    guard let handler = waiting.held?.handler else { return 0 }
    return codeAddress(of: Call(body: handler))
  }
}

extension ChildProcessSource: CustomDebugStringConvertible {
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String { itemDescription(self, "process = \(process)") }
}

extension ChildProcessSource.End: CustomStringConvertible {
  /// The text for a person: "exited with 0", or the reason why that is not known.
  public var description: String {
    switch self {
    case .ended(let status): "\(status)"
    case .unknown(let error): "\(error)"
    }
  }
}
