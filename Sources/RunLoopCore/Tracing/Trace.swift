// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// An event in a loop, as reported to a trace hook.
  package struct TraceEvent: Sendable {
    package enum Kind: Sendable, Hashable {
      case activity(Activity)
      case sleep(until: Tick)
      case callOut(CallOutKind)
      case callOutEnded(CallOutKind)
    }

    package let kind: Kind
    package let mode: Mode
    /// The number of active runs.
    package let depth: Int
    /// The time of the event on the loop's clock.
    package let time: Tick
  }

  /// The kinds of call-out, except for observers, which ``TraceEvent/Kind/activity(_:)`` reports.
  package enum CallOutKind: String, Sendable, Hashable {
    case block
    case source0
    case source1
    case timer
    case mainQueue
  }

  /// Sets the closure that is called on the loop's thread for every event in the loop, or removes it if `nil`.
  ///
  /// Can be called from any thread. A loop that runs on another thread starts to call the closure with its next pass.
  package func setTraceHook(_ hook: (@Sendable (TraceEvent) -> Void)?) {
    tracer.set(hook)
    if hook == nil {
      tracing.bitwiseAnd(Tracing.levels, ordering: .sequentiallyConsistent)
    } else {
      tracing.bitwiseOr(Tracing.hook, ordering: .sequentiallyConsistent)
    }
    // Makes the loop's thread read `tracing` again.
    takenLevel.store(Tracing.unknownLevel, ordering: .sequentiallyConsistent)
    if isOwnThread { noteTracing() }
    // Whether activities without observers are reported depends on the hook.
    table.withLock { for mode in $0.modes.values { mode.noteHook() } }
  }

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

/// A loop's trace hook.
///
/// Whether there is a hook is stored in the loop, together with the level of the instruments.
final class Tracer: @unchecked Sendable {
  // Sendable: the lock guards the hook.
  private let lock = Lock()
  private var hook: (@Sendable (RunLoop.TraceEvent) -> Void)?

  func set(_ hook: (@Sendable (RunLoop.TraceEvent) -> Void)?) {
    // The previous hook is released after the lock.
    _ = lock.withLock { exchange(&self.hook, with: hook) }
  }

  @inline(never)
  func send(_ event: RunLoop.TraceEvent) {
    let hook = lock.withLock { self.hook }
    hook?(event)
  }
}
