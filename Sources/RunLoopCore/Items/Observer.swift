// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

extension RunLoop {
  /// A closure that a loop calls at chosen stages of its runs.
  ///
  /// An observer can be in any number of modes of one loop at a time, and does not keep a loop alive. While it is being
  /// called, runs nested in its call-out skip it. Observers of one stage are called by ascending order, and observers
  /// of equal order as they were added.
  ///
  /// The corresponding Core Foundation type is `CFRunLoopObserver`.
  public final class Observer: @unchecked Sendable {
    // Sendable: the binding is guarded by the lock (and the loop's table lock), the handler by the reference.

    /// The stages at which the observer is called.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverGetActivities`.
    public let activities: Activity
    /// Whether the observer stays valid after its first call.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverDoesRepeat`.
    public let repeats: Bool
    /// Observers with a smaller order are called first.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverGetOrder`.
    public let order: Int

    /// Whether runs nested in its call-out call it too.
    private let isReentrant: Bool
    private let lock = Lock()
    /// Its mark says that the observer is being called.
    let reference = HandlerReference()
    /// The loop that has the observer in its modes or among its common items.
    @exclusivity(unchecked) private var loop: RunLoop?
    @exclusivity(unchecked) private var modes: ContiguousArray<ModeState> = []
    @exclusivity(unchecked) private var isCommon = false
    @exclusivity(unchecked) private var handler: Handler?

    /// Wrapped as ``Block`` is.
    private struct Call {
      let body: @Sendable (Observer, Activity) -> Void
    }

    /// Not copied: a call needs no reference to the closure other than the observer's, which the handler reference
    /// keeps.
    private struct Handler: ~Copyable {
      let call: Call
    }

    /// Makes an observer that is in no mode.
    ///
    /// - Parameters:
    ///   - activities: The stages at which it is called.
    ///   - repeats: Whether it stays valid after its first call.
    ///   - order: Observers with a smaller order are called first.
    ///   - handler: Called on the loop's thread with the observer and the stage. It is released when the observer is
    ///     invalid and no call-out runs.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverCreateWithHandler`.
    public convenience init(
      activities: Activity, repeats: Bool = true, order: Int = 0,
      handler: @escaping @Sendable (Observer, Activity) -> Void
    ) {
      self.init(activities: activities, repeats: repeats, order: order, isReentrant: false, handler: handler)
    }

    /// Makes an observer that, if it is re-entrant, is also called by runs nested in its call-out.
    package init(
      activities: Activity, repeats: Bool, order: Int, isReentrant: Bool,
      handler: @escaping @Sendable (Observer, Activity) -> Void
    ) {
      self.activities = activities
      self.repeats = repeats
      self.order = order
      self.isReentrant = isReentrant
      self.handler = Handler(call: Call(body: handler))
    }

    /// Whether the observer can still be added and called.
    ///
    /// Can be used from any thread.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverIsValid`.
    public var isValid: Bool { reference.isOpen }

    /// Ends the observer permanently: it leaves all modes and is not called again.
    ///
    /// The handler is released at once, or when its running call-out has returned. Can be called from any thread.
    /// Calling it again has no effect. The corresponding Core Foundation function is `CFRunLoopObserverInvalidate`.
    public func invalidate() {
      lock.lock()
      let closing = reference.close()
      let loop = loop
      lock.unlock()
      guard closing != .already else { return }
      loop?.expel(self)
      if closing == .release { releaseHandler() }
    }
  }
}

extension RunLoop.Observer {
  /// The user's function; the caller holds the observer.
  var code: UInt64 {
    switch handler {
    case .some(let handler): ClosureCode.first(of: handler.call)
    case nil: 0
    }
  }

  /// Calls the observer unless it is invalid or being called; called on the loop's thread.
  func call(_ activity: RunLoop.Activity) {
    // An observer that was moved to another loop may still be in the former loop's list for the stage that is running.
    guard isReentrant ? reference.enter() : reference.enterMarking() else { return }
    switch handler {
    case .some(let handler):
      callingOnThisThread(CRL_KIND_OBSERVER, code: ClosureCode.first(of: handler.call), item: itemAddress(self)) {
        runLoopIsCallingOutToAnObserver(handler.call.body, self, activity)
      }
    case nil: break
    }
    if !repeats { invalidate() }
    leave()
  }

  /// Ends a call-out, even one that does not return because its thread ends in it.
  ///
  /// Called on the loop's thread.
  @inline(__always)
  func leave() {
    if isReentrant ? reference.leave() : reference.leaveUnmarking() { releaseHandler() }
  }

  @inline(never)
  private func releaseHandler() { _ = handler.take() }
}

extension RunLoop.Observer: ModeItem {
  func lockItem() { lock.lock() }
  func unlockItem() { lock.unlock() }
  func hold() -> Bool { reference.enter() }
  func letGo() { if reference.leave() { releaseHandler() } }
  var isOpen: Bool { reference.isOpen }

  func mayJoin(_ loop: RunLoop, leaving former: inout RunLoop?) -> Bool {
    guard let home = self.loop, home !== loop else { return true }
    former = home
    guard modes.isEmpty else { return false }
    // A loop of the process that this one was forked from is left as it is: its lock may be held.
    if !home.table.isOfParent { home.table.withLock { _ = $0.removeCommon(self) } }
    isCommon = false
    self.loop = nil
    return true
  }

  func countsAsCommon(of loop: RunLoop) -> Bool { self.loop === loop && !modes.isEmpty }

  func setCommon(_ isCommon: Bool, of loop: RunLoop) {
    self.isCommon = isCommon
    rebind(to: loop)
  }

  func modes(of loop: RunLoop) -> ShortList<ModeState> {
    var modes = ShortList<ModeState>()
    if self.loop === loop { for mode in self.modes { modes.append(mode) } }
    return modes
  }
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { modes.contains { $0 === mode } }

  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) {
    modes.append(mode)
    mode.insert(self)
    rebind(to: loop)
  }

  func leave(_ mode: ModeState, of loop: RunLoop) {
    modes.removeAll { $0 === mode }
    mode.remove(self)
    rebind(to: loop)
  }

  /// A loop has the observer while it is in a mode or among the common items; an observer that is in no mode can join
  /// another loop.
  private func rebind(to loop: RunLoop) {
    self.loop = modes.isEmpty && !isCommon ? nil : loop
  }
}

extension RunLoop.Observer: CustomDebugStringConvertible {
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    "<RunLoop.Observer \(addressDescription(self))>{valid = \(yesOrNo(isValid)), "
      + "activities = 0x\(String(activities.rawValue, radix: 16)), repeats = \(yesOrNo(repeats)), order = \(order), "
      + "\(callOutDescription(heldCode { code }))}"
  }
}
