// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore

/// Reaps processes that this process has adopted, as the first process of a container does: when a process ends, its
/// children become children of process 1, and stay zombies until that waits for them.
///
/// It is an item of a run loop, which is notified when a child ends (`SIGCHLD`). The kernel does not say which children
/// were adopted, so it leaves alone:
/// - children that a `ChildProcessSource` or a `SpawnedProcess` object stands for;
/// - children that it has seen as those of a thread other than the first, as the first adopts, unless it has left;
/// - children that other code reaps within the ``grace`` after their end, as code that waits for its child does;
/// - children that `leaving` names: those that other code waits for later, such as with `pclose`.
///
/// Everything else is reaped. When a thread ends, its children become the first one's. The reaper looks at the
/// children when it is added to a loop and when a child ends (`SIGCHLD`), so it may take a child whose thread ended
/// before any look. A kernel without `/proc/self/task/*/children` does not say which thread has a child; there it takes
/// those of all threads.
///
/// A loop holds what it needs of the reapers that are in it; one that is in no loop reaps nothing. Can be used from any
/// thread.
public final class OrphanReaper: Sendable {
  /// An adopted process that was reaped.
  public struct Orphan: Hashable, Sendable {
    /// Its number, which may be reused now.
    public let process: Int32
    /// How it ended.
    public let status: ChildProcessSource.ExitStatus
  }

  /// How long a child is left to other code after its end was seen.
  public let grace: Duration

  private let source: SignalSource
  private let children: AdoptedChildren

  /// Makes a reaper that is in no mode.
  ///
  /// - Parameters:
  ///   - grace: How long a child is left to other code after its end was seen.
  ///   - adoptsOrphans: Whether this process adopts the orphans among its descendants even if it is not process 1, as
  ///     long as it lives (`PR_SET_CHILD_SUBREAPER`).
  ///   - handler: Called on a loop's thread with each process that was reaped.
  ///   - leaving: Whether a child is other code's. It is called on a loop's thread before the child is reaped; for a
  ///     child that it names, again whenever another child ends.
  /// - Throws: The errors of a ``SignalSource``.
  public init(
    grace: Duration = .milliseconds(500), adoptsOrphans: Bool = false,
    handler: (@Sendable (Orphan) -> Void)? = nil, leaving: (@Sendable (Int32) -> Bool)? = nil
  ) throws(SignalError) {
    self.grace = grace
    let children = AdoptedChildren(grace, leaving, handler)
    self.children = children
    source = try SignalSource(signal: SIGCHLD) { _, _ in children.look(isSignalled: true) }
    if adoptsOrphans { _ = crl_process_adopt_orphans() }
  }

  /// Whether the reaper can still be added.
  public var isValid: Bool { source.isValid }

  /// Ends the reaper: it leaves all modes and reaps nothing more.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func invalidate() {
    source.invalidate()
    children.end()
  }
}

extension OrphanReaper: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// Children that have ended before are found when the reaper is added.
  ///
  /// - Throws: The errors of a ``SignalSource``.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    let answer = try source.respond(to: request)
    switch request.act {
    case .add: children.enter(request.loop, request.mode)
    case .remove: children.leave(request.loop, request.mode)
    case .contains: break
    }
    return answer
  }
}

extension OrphanReaper: CustomDebugStringConvertible {
  /// The item's state.
  public var debugDescription: String { "<OrphanReaper>{valid = \(isValid), grace = \(grace)}" }
}
