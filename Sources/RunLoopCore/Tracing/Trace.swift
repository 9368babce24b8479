// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// One thing that a loop did, as a trace hook gets it.
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

  /// The kinds of call-out, but for the observers', which ``TraceEvent/Kind/activity(_:)`` announces.
  package enum CallOutKind: String, Sendable, Hashable {
    case block
    case source0
    case source1
    case timer
    case mainQueue
  }

  /// Sets what is called, on the loop's thread, with everything that the loop does; nil: nothing.
  ///
  /// Any thread.
  package func setTraceHook(_ hook: (@Sendable (TraceEvent) -> Void)?) {
    tracer.set(hook)
  }

  @inline(__always)
  func trace(_ kind: @autoclosure () -> TraceEvent.Kind, _ mode: ModeState) {
    if tracer.isOn {
      tracer.send(TraceEvent(kind: kind(), mode: mode.name, depth: innermost.depth, time: waiter.now))
    }
  }
}

/// The trace hook of a loop.
///
/// While there is none, asking costs one load and one branch.
final class Tracer: @unchecked Sendable {
  // Sendable: the hook is guarded by the lock.
  private let enabled = Atomic<Bool>(false)
  private let lock = Lock()
  private var hook: (@Sendable (RunLoop.TraceEvent) -> Void)?

  var isOn: Bool {
    @inline(__always) get { enabled.load(ordering: .relaxed) }
  }

  func set(_ hook: (@Sendable (RunLoop.TraceEvent) -> Void)?) {
    // The hook before it is released outside the lock.
    _ = lock.withLock {
      let before = self.hook
      self.hook = hook
      enabled.store(hook != nil, ordering: .relaxed)
      return before
    }
  }

  @inline(never)
  func send(_ event: RunLoop.TraceEvent) {
    let hook = lock.withLock { self.hook }
    hook?(event)
  }
}
