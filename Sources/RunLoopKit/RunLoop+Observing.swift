// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

// What Foundation on Linux has for XCTest, with its names: observers, sources and a stop. The handlers are called on
// the loop's thread only.
extension RunLoopCore.RunLoop {
  /// Ends the innermost run that is active.
  ///
  /// This is ``stop()``. Can be called from any thread. The corresponding Foundation method is `_stop()`.
  public func _stop() { stop() }

  /// A stage of a run.
  ///
  /// The raw values are Core Foundation's; those of Foundation on Linux are different. The corresponding Foundation
  /// type is `RunLoop._Activity`.
  public enum _Activity: UInt, Sendable {
    /// The run begins.
    case entry = 1
    /// Timers may fire later in the pass.
    case beforeTimers = 2
    /// Blocks and sources come next.
    case beforeSources = 4
    /// The loop is about to wait.
    case beforeWaiting = 32
    /// The wait is over.
    case afterWaiting = 64
    /// The run is over.
    case exit = 128
  }

  /// Stages of a run.
  ///
  /// The corresponding Foundation type is `RunLoop._Activities`.
  public struct _Activities: OptionSet, Sendable {
    /// The bits of ``_Activity``.
    public var rawValue: UInt

    /// Makes a set of its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Makes a set of one stage.
    public init(_ activity: _Activity) { rawValue = activity.rawValue }

    /// The run begins.
    public static let entry = _Activities(.entry)
    /// Timers may fire later in the pass.
    public static let beforeTimers = _Activities(.beforeTimers)
    /// Blocks and sources come next.
    public static let beforeSources = _Activities(.beforeSources)
    /// The loop is about to wait.
    public static let beforeWaiting = _Activities(.beforeWaiting)
    /// The wait is over.
    public static let afterWaiting = _Activities(.afterWaiting)
    /// The run is over.
    public static let exit = _Activities(.exit)
    /// Every stage.
    public static let allActivities = _Activities(rawValue: 0x0FFF_FFFF)
  }

  /// An observer that ends with its object.
  ///
  /// The corresponding Foundation class is `RunLoop._Observer`.
  public final class _Observer: Sendable {
    fileprivate let observer: Observer

    fileprivate init(_ observer: Observer) { self.observer = observer }

    deinit { observer.invalidate() }

    /// Ends the observer.
    ///
    /// Can be called from any thread.
    public func invalidate() { observer.invalidate() }

    /// The position of the observer among the observers of a stage.
    public var order: Int { observer.order }

    /// Whether it can be called.
    ///
    /// Can be used from any thread.
    public var isValid: Bool { observer.isValid }
  }

  /// Calls a closure at stages of the runs of a mode, until the observer is released.
  ///
  /// Can be called from any thread. The corresponding Foundation method is `_observe(_:in:repeats:order:handler:)`.
  public func _observe(
    _ activities: _Activities, in mode: Mode = .default, repeats: Bool = true, order: Int = 0,
    handler: @escaping (_Activity) -> Void
  ) -> _Observer {
    let handler = LoopsOwn(StageHandler(call: handler))
    let stages = Activity(rawValue: activities.rawValue)
    let observer = Observer(activities: stages, repeats: repeats, order: order) { _, activity in
      guard let stage = _Activity(rawValue: activity.rawValue) else { return }
      noteCall(of: handler.value)
      handler.value.call(stage)
    }
    add(observer, forMode: mode)
    return _Observer(observer)
  }

  /// Calls a closure at one stage of the runs of a mode, until the observer is released.
  ///
  /// Can be called from any thread. The corresponding Foundation method is `_observe(_:in:repeats:order:handler:)`.
  public func _observe(
    _ activity: _Activity, in mode: Mode = .default, repeats: Bool = true, order: Int = 0,
    handler: @escaping (_Activity) -> Void
  ) -> _Observer {
    _observe(_Activities(activity), in: mode, repeats: repeats, order: order, handler: handler)
  }

  /// A source that is signalled by hand, for subclasses, which define its work.
  ///
  /// It ends with its object.
  ///
  /// The corresponding Foundation class is `RunLoop._Source`.
  open class _Source {
    fileprivate private(set) var source: Source?

    /// Makes a source that is in no mode.
    public init(order: Int = 0) {
      // Nobody is called once the object is gone: the source is invalid then.
      let me = LoopsOwn(Unowned(self))
      source = Source(
        order: order, schedule: { _, mode in me.value.called?.didSchedule(in: mode) },
        cancel: { _, mode in me.value.called?.didCancel(in: mode) }, perform: { me.value.called?.perform() })
    }

    private final class Unowned {
      private weak var object: _Source?
      init(_ object: _Source) { self.object = object }

      /// The object, one of whose functions is about to be called.
      var called: _Source? {
        let object = object
        noteCall(on: object.map { type(of: $0) })
        return object
      }
    }

    deinit { source?.invalidate() }

    /// Called when the source has entered a mode.
    open func didSchedule(in mode: Mode) {}

    /// Called when the source has left a mode.
    open func didCancel(in mode: Mode) {}

    /// Called on the loop's thread when the source was signalled.
    open func perform() {}

    /// Ends the source.
    ///
    /// Can be called from any thread.
    open func invalidate() { source?.invalidate() }

    /// The position of the source among the sources of a mode.
    open var order: Int { source?.order ?? 0 }

    /// Whether it can be performed.
    ///
    /// Can be used from any thread.
    open var isValid: Bool { source?.isValid ?? false }

    /// Marks the source, which does not wake the loop.
    ///
    /// Can be called from any thread.
    open func signal() { source?.signal() }
  }

  /// Adds a source to a mode.
  ///
  /// Can be called from any thread. The corresponding Foundation method is `_add(_:forMode:)`.
  public func _add(_ source: _Source, forMode mode: Mode) {
    if let source = source.source { add(source, forMode: mode) }
  }

  /// Removes a source from a mode.
  ///
  /// Can be called from any thread. The corresponding Foundation method is `_remove(_:for:)`.
  public func _remove(_ source: _Source, for mode: Mode) {
    if let source = source.source { remove(source, forMode: mode) }
  }
}

/// In a structure of its own a closure is kept without a thunk.
private struct StageHandler {
  let call: (RunLoopCore.RunLoop._Activity) -> Void
}

/// Takes what is no `Sendable` to the thread of a loop, which alone uses it.
private struct LoopsOwn<Value>: @unchecked Sendable {
  // Sendable: Foundation's spelling leaves it to the caller, and the loop's thread alone calls it.
  let value: Value

  init(_ value: Value) { self.value = value }
}
