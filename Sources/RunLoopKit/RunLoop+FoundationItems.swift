// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

// Foundation's own timers and ports in our loops. They belong to Core Foundation's loop of the loop's thread, which
// this one serves from then on.
extension RunLoopCore.RunLoop {
  /// Adds one of Foundation's timers to a mode.
  ///
  /// It is added to Foundation's loop of this loop's thread, which this loop then serves, as by
  /// ``serveCoreFoundation()``. On the loop's thread that happens at once; from any other thread when the loop next
  /// runs in the mode or in a common one. If ``servedByCoreFoundation(mode:_:)`` runs Foundation's loop, the timer is
  /// added to that loop, and this one does not begin to serve it. The timer keeps Foundation's defects; a `Timer` of
  /// this package has none of them.
  ///
  /// The timer is not added, which is reported, if the loop's thread has ended, the loop is the guest of a loop other
  /// than Foundation's, or the system has no descriptor left for the hosting. Where a `Bool` is expected, the call
  /// returns whether it was added.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  @_disfavoredOverload
  public func add(_ timer: Foundation.Timer, forMode mode: Mode) { _ = accept(timer, mode) }

  /// Adds one of Foundation's timers to a mode, and returns whether it was added, or will be on the loop's thread.
  ///
  /// It is chosen where a `Bool` is expected.
  @_disfavoredOverload
  @discardableResult
  public func add<Item: Foundation.Timer>(_ timer: Item, forMode mode: Mode) -> Bool { accept(timer, mode) }

  private func accept(_ timer: Foundation.Timer, _ mode: Mode) -> Bool {
    let timer = Handed(timer)
    return withFoundation(mode) { $0.add(timer.value, forMode: Foundation.RunLoop.Mode(mode.rawValue)) }
  }

  /// Adds one of Foundation's ports to a mode: a socket port, or a port of a subclass.
  ///
  /// It is added like a timer. In the common pseudo-mode it is added to the modes that are common at the time, because
  /// a socket port of Foundation on Linux knows no common modes.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  @_disfavoredOverload
  public func add(_ port: Foundation.Port, forMode mode: Mode) { _ = accept(port, mode) }

  /// Adds one of Foundation's ports to a mode, and returns whether it was added, or will be on the loop's thread.
  ///
  /// It is chosen where a `Bool` is expected.
  @_disfavoredOverload
  @discardableResult
  public func add<Item: Foundation.Port>(_ port: Item, forMode mode: Mode) -> Bool { accept(port, mode) }

  private func accept(_ port: Foundation.Port, _ mode: Mode) -> Bool {
    let port = Handed(port)
    return withFoundation(mode) { [self] loop in
      for mode in concreteModes(mode) { loop.add(port.value, forMode: mode) }
    }
  }

  /// Takes one of Foundation's ports out of a mode.
  ///
  /// Like the addition, this happens at once on the loop's thread.
  ///
  /// The corresponding Foundation method is `remove(_:forMode:)`.
  @_disfavoredOverload
  public func remove(_ port: Foundation.Port, forMode mode: Mode) {
    let port = Handed(port)
    _ = withFoundation(mode) { [self] loop in
      for mode in concreteModes(mode) { loop.remove(port.value, forMode: mode) }
    }
  }

  /// Does something with Foundation's loop of this loop's thread, which is served from then on.
  private func withFoundation(_ mode: Mode, _ body: @escaping @Sendable (Foundation.RunLoop) -> Void) -> Bool {
    guard self == RunLoopCore.RunLoop.current else {
      return perform(inModes: [mode, .common]) { [self] in _ = withFoundation(mode, body) }
    }
    do {
      if !isServedAnyway { try serveCoreFoundation() }
    } catch {
      Diagnostic.coreFoundation.report(
        "an item of Foundation's was not added to the run loop of \(threadDescription): \(error)")
      return false
    }
    body(.current)
    return true
  }

  /// Whether Foundation's loop need not be served, since somebody runs it, or is served without a call.
  private var isServedAnyway: Bool {
    RunLoopCore.RunLoop.isServedByCoreFoundation || ((mainService as? MainThreadService)?.isOn ?? false)
  }

  private func concreteModes(_ mode: Mode) -> [Foundation.RunLoop.Mode] {
    (mode == .common ? commonModes : [mode]).map { Foundation.RunLoop.Mode($0.rawValue) }
  }
}

extension Foundation.Port {
  /// Adds the port to a mode of a loop of ours, as `RunLoop.add(_:forMode:)` does.
  ///
  /// Write the loop's name, `RunLoop.current`: a mere `.current` is Foundation's loop.
  ///
  /// The corresponding Foundation method is `schedule(in:forMode:)`.
  @_disfavoredOverload
  public func schedule(in loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    loop.add(self, forMode: mode)
  }

  /// Takes the port out of a mode of a loop of ours, as `RunLoop.remove(_:forMode:)` does.
  ///
  /// The corresponding Foundation method is `remove(from:forMode:)`.
  @_disfavoredOverload
  public func remove(from loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    loop.remove(self, forMode: mode)
  }
}

/// Takes something of Foundation's to the thread of a loop.
private struct Handed<Value>: @unchecked Sendable {
  // Sendable: whoever adds a timer or port to a loop leaves it to the loop's thread.
  let value: Value

  init(_ value: Value) { self.value = value }
}
