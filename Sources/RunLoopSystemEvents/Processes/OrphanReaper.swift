// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore

/// Reaps processes that this process has adopted, as the first process of a container must.
///
/// When a process ends, its children become children of process 1 and stay zombies until it waits for them. The reaper
/// is a run loop item and is notified when a child ends (`SIGCHLD`). Because the kernel does not report which children
/// were adopted, it does not reap:
/// - children of a `ChildProcessSource` or a `SpawnedProcess`;
/// - children that it has seen to belong to a thread other than the first, which adopts orphans unless it has ended;
/// - children that other code reaps within the ``grace`` period after they end, as code that waits for its child does;
/// - children for which `leaving` returns true, because other code waits for them later, for example with `pclose`.
///
/// All other children are reaped. When a thread ends, its children become those of the first thread. Because the
/// reaper only checks the children when it is added to a loop and when a child ends, it may reap a child whose thread
/// ended before any check. On a kernel without `/proc/self/task/*/children`, which does not report which thread a
/// child belongs to, it reaps the children of all threads.
///
/// A loop retains the state of the reapers that were added to it. A reaper that is in no loop reaps nothing. Can be
/// used from any thread.
public final class OrphanReaper: Sendable {
  /// An adopted process that was reaped.
  public struct Orphan: Hashable, Sendable {
    /// The process ID, which can now be reused.
    public let process: Int32
    /// The way in which the process ended.
    public let status: ChildProcessSource.ExitStatus
  }

  /// The time for which a child is left to other code after its end was seen.
  public let grace: Duration

  private let source: SignalSource
  private let children: AdoptedChildren

  /// Creates a reaper that is in no mode.
  ///
  /// - Parameters:
  ///   - grace: The time for which a child is left to other code after its end was seen; 500 milliseconds by default.
  ///   - adoptsOrphans: Whether this process adopts the orphans among its descendants for the rest of its life, even
  ///     if it is not process 1 (`PR_SET_CHILD_SUBREAPER`). The default is false.
  ///   - handler: Called on a loop's thread with each process that was reaped.
  ///   - leaving: Returns whether to leave a child to other code. It is called on a loop's thread before the child is
  ///     reaped, and again for a child that is left whenever another child ends.
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

  /// Whether the reaper is valid, so that it can be added to a loop.
  public var isValid: Bool { source.isValid }

  /// Permanently invalidates the reaper: it leaves all modes and reaps nothing more.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func invalidate() {
    source.invalidate()
    children.end()
  }
}

extension OrphanReaper: RunLoopItem {
  /// Adds the reaper to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// When the reaper is added, it finds children that have already ended.
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
  /// The reaper's state.
  public var debugDescription: String { "<OrphanReaper>{valid = \(isValid), grace = \(grace)}" }
}
