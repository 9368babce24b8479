// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// One thing that a loop did, as it is reported to a trace hook.
  package struct TraceEvent: Sendable {
    package enum Kind: Sendable, Hashable {
      case activity(Activity)
      case sleep(until: Tick)
      case callOut(CallOutKind)
      case callOutEnded(CallOutKind)
    }

    package let kind: Kind
    package let mode: Mode
    /// How many runs are active.
    package let depth: Int
    /// When, by the loop's clock.
    package let time: Tick
  }

  /// The kinds of call-out, except the observers', which ``TraceEvent/Kind/activity(_:)`` announces.
  package enum CallOutKind: String, Sendable, Hashable {
    case block
    case source0
    case source1
    case timer
    case mainQueue
  }

  /// Sets the closure that is called, on the loop's thread, with everything that the loop does; nil removes it.
  ///
  /// Can be called from any thread. A loop that runs on another thread calls the closure from its next pass on.
  package func setTraceHook(_ hook: (@Sendable (TraceEvent) -> Void)?) {
    tracer.set(hook)
    if hook == nil {
      tracing.bitwiseAnd(Tracing.levels, ordering: .sequentiallyConsistent)
    } else {
      tracing.bitwiseOr(Tracing.hook, ordering: .sequentiallyConsistent)
    }
    // The loop's thread looks again.
    takenLevel.store(Tracing.unknownLevel, ordering: .sequentiallyConsistent)
    if isOwnThread { noteTracing() }
    // Every stage has to be noted now, or no longer.
    table.withLock { for mode in $0.modes.values { mode.noteHook() } }
  }

  /// Whether there is a hook.
  var isHooked: Bool {
    @inline(__always) get { tracing.load(ordering: .relaxed) & Tracing.hook != 0 }
  }

  @inline(__always)
  func trace(_ kind: @autoclosure () -> TraceEvent.Kind, _ mode: ModeState) {
    if isHooked {
      tracer.send(TraceEvent(kind: kind(), mode: mode.name, depth: innermost.depth, time: waiter.now))
    }
  }
}

/// The trace hook of a loop.
///
/// The loop itself knows whether there is one, beside the level of the instruments.
final class Tracer: @unchecked Sendable {
  // Sendable: the hook is guarded by the lock.
  private let lock = Lock()
  private var hook: (@Sendable (RunLoop.TraceEvent) -> Void)?

  func set(_ hook: (@Sendable (RunLoop.TraceEvent) -> Void)?) {
    // The previous hook is released outside the lock.
    _ = lock.withLock { exchange(&self.hook, with: hook) }
  }

  @inline(never)
  func send(_ event: RunLoop.TraceEvent) {
    let hook = lock.withLock { self.hook }
    hook?(event)
  }
}
