// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

extension RunLoop {
  /// A closure that a loop calls at chosen points of its runs.
  ///
  /// An observer can be in any number of modes of one loop at a time, and does not keep a loop alive. Runs nested in
  /// an observer's call-out do not call that observer. The observers of an activity are called in ascending order of
  /// ``order``; those of equal order are called in the order in which they were added.
  ///
  /// The corresponding Core Foundation type is `CFRunLoopObserver`.
  public final class Observer: @unchecked Sendable {
    // Sendable: the lock and the loop's table lock guard the binding, and the reference guards the handler.

    /// The activities for which the observer is called.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverGetActivities`.
    public let activities: Activity
    /// Whether the observer remains valid after its first call.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverDoesRepeat`.
    public let repeats: Bool
    /// The observer's priority; observers with a smaller order are called first.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverGetOrder`.
    public let order: Int

    /// Whether runs nested in the observer's call-out call it again.
    private let isReentrant: Bool
    private let lock = Lock()
    /// The mark is set while the observer is being called.
    let reference = HandlerReference()
    /// The loop that contains the observer in its modes or common items.
    @exclusivity(unchecked) private var loop: RunLoop?
    @exclusivity(unchecked) private var modes: ContiguousArray<ModeState> = []
    @exclusivity(unchecked) private var isCommon = false
    @exclusivity(unchecked) private var handler: Handler?

    /// Wrapped in the same way as ``Block``.
    private struct Call {
      let body: @Sendable (Observer, Activity) -> Void
    }

    /// Noncopyable: the observer's own reference to the closure, which the handler reference protects, suffices for a
    /// call.
    private struct Handler: ~Copyable {
      let call: Call
    }

    /// Creates an observer that is in no mode.
    ///
    /// - Parameters:
    ///   - activities: The activities for which the observer is called.
    ///   - repeats: Whether the observer remains valid after its first call. Defaults to `true`.
    ///   - order: The observer's priority; smaller orders are called first. Defaults to 0.
    ///   - handler: Called on the loop's thread with the observer and the activity. It is released once the observer
    ///     is invalid and no call-out is running.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverCreateWithHandler`.
    public convenience init(
      activities: Activity, repeats: Bool = true, order: Int = 0,
      handler: @escaping @Sendable (Observer, Activity) -> Void
    ) {
      self.init(activities: activities, repeats: repeats, order: order, isReentrant: false, handler: handler)
    }

    /// Creates an observer that, if `isReentrant` is true, is also called by runs nested in its call-out.
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
    /// Initially `true`. Can be read from any thread.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopObserverIsValid`.
    public var isValid: Bool { reference.isOpen }

    /// Removes the observer from all modes permanently and prevents further calls to its handler.
    ///
    /// The handler is released immediately or, if it is running, when it returns. Can be called from any thread.
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
  /// The address of the user's function; the caller must hold the observer.
  var code: UInt64 {
    switch handler {
    case .some(let handler): ClosureCode.first(of: handler.call)
    case nil: 0
    }
  }

  /// Calls the observer unless it is invalid or already being called; must be called on the loop's thread.
  func call(_ activity: RunLoop.Activity) {
    // An observer moved to another loop may still be in the previous loop's list for the current activity.
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
  /// Must be called on the loop's thread.
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
    // A loop of the parent process is left unchanged after a fork because its lock may be held.
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

  /// Binds the observer to the loop while it is in a mode or among the common items; otherwise it can join another
  /// loop.
  private func rebind(to loop: RunLoop) {
    self.loop = modes.isEmpty && !isCommon ? nil : loop
  }
}

extension RunLoop.Observer: CustomDebugStringConvertible {
  /// A description of the observer's state, formatted like Core Foundation's.
  public var debugDescription: String {
    "<RunLoop.Observer \(addressDescription(self))>{valid = \(yesOrNo(isValid)), "
      + "activities = 0x\(String(activities.rawValue, radix: 16)), repeats = \(yesOrNo(repeats)), order = \(order), "
      + "\(callOutDescription(heldCode { code }))}"
  }
}
