// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

// Foundation's own timers and ports in our loops. They are added to Core Foundation's loop of the loop's thread, which
// this loop serves from then on.
extension RunLoopCore.RunLoop {
  /// Adds one of Foundation's timers to a mode.
  ///
  /// The timer is added to Foundation's loop of this loop's thread, which this loop then serves, as with
  /// ``serveCoreFoundation()``. On the loop's thread this happens immediately; from any other thread, it happens when
  /// the loop next runs in the mode or in a common mode. If ``servedByCoreFoundation(mode:_:)`` runs Foundation's
  /// loop, the timer is added to that loop without this loop starting to serve it. The timer keeps the defects of
  /// Foundation's implementation, which a `Timer` of this package does not have.
  ///
  /// If the loop's thread has ended, the loop is the guest of a loop other than Foundation's, or the system has no
  /// descriptors left for the hosting, the timer is not added, which is reported. Where a `Bool` is expected, the call
  /// returns whether the timer was added.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  @_disfavoredOverload
  public func add(_ timer: Foundation.Timer, forMode mode: Mode) { _ = accept(timer, mode) }

  /// Adds one of Foundation's timers to a mode, and returns whether it was added, or will be on the loop's thread.
  ///
  /// This overload is selected where a `Bool` is expected.
  @_disfavoredOverload
  @discardableResult
  public func add<Item: Foundation.Timer>(_ timer: Item, forMode mode: Mode) -> Bool { accept(timer, mode) }

  private func accept(_ timer: Foundation.Timer, _ mode: Mode) -> Bool {
    let timer = Handed(timer)
    return withFoundation(mode) { $0.add(timer.value, forMode: Foundation.RunLoop.Mode(mode.rawValue)) }
  }

  /// Adds one of Foundation's ports to a mode: a socket port, or a port of a subclass.
  ///
  /// It is added like a timer. For `.common`, it is added to the modes that are common at the time, because socket
  /// ports of Foundation on Linux do not support common modes.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  @_disfavoredOverload
  public func add(_ port: Foundation.Port, forMode mode: Mode) { _ = accept(port, mode) }

  /// Adds one of Foundation's ports to a mode, and returns whether it was added, or will be on the loop's thread.
  ///
  /// This overload is selected where a `Bool` is expected.
  @_disfavoredOverload
  @discardableResult
  public func add<Item: Foundation.Port>(_ port: Item, forMode mode: Mode) -> Bool { accept(port, mode) }

  private func accept(_ port: Foundation.Port, _ mode: Mode) -> Bool {
    let port = Handed(port)
    return withFoundation(mode) { [self] loop in
      for mode in concreteModes(mode) { loop.add(port.value, forMode: mode) }
    }
  }

  /// Removes one of Foundation's ports from a mode.
  ///
  /// As with adding a port, this happens immediately on the loop's thread.
  ///
  /// The corresponding Foundation method is `remove(_:forMode:)`.
  @_disfavoredOverload
  public func remove(_ port: Foundation.Port, forMode mode: Mode) {
    let port = Handed(port)
    _ = withFoundation(mode) { [self] loop in
      for mode in concreteModes(mode) { loop.remove(port.value, forMode: mode) }
    }
  }

  /// Calls a closure with Foundation's loop of this loop's thread, which is served from then on.
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

  /// Whether Foundation's loop need not be served, because it is being run or is already served automatically.
  private var isServedAnyway: Bool {
    RunLoopCore.RunLoop.isServedByCoreFoundation || ((mainService as? MainThreadService)?.isOn ?? false)
  }

  private func concreteModes(_ mode: Mode) -> [Foundation.RunLoop.Mode] {
    (mode == .common ? commonModes : [mode]).map { Foundation.RunLoop.Mode($0.rawValue) }
  }
}

extension Foundation.Port {
  /// Adds the port to a mode of one of our loops, like `RunLoop.add(_:forMode:)`.
  ///
  /// Write the name of the loop in full, as in `RunLoop.current`: `.current` alone is Foundation's loop.
  ///
  /// The corresponding Foundation method is `schedule(in:forMode:)`.
  @_disfavoredOverload
  public func schedule(in loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    loop.add(self, forMode: mode)
  }

  /// Removes the port from a mode of one of our loops, like `RunLoop.remove(_:forMode:)`.
  ///
  /// The corresponding Foundation method is `remove(from:forMode:)`.
  @_disfavoredOverload
  public func remove(from loop: RunLoopCore.RunLoop, forMode mode: RunLoopCore.RunLoop.Mode) {
    loop.remove(self, forMode: mode)
  }
}

/// A wrapper that passes a Foundation object to the thread of a loop.
private struct Handed<Value>: @unchecked Sendable {
  // Sendable: code that adds a timer or port to a loop leaves it to the loop's thread.
  let value: Value

  init(_ value: Value) { self.value = value }
}
