// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// A source that is signalled manually (version 0).
  ///
  /// ``signal()`` marks the source; the loop that next makes a pass in one of the source's modes performs it once. A
  /// signal does not wake a sleeping loop. As in Core Foundation, call ``RunLoop/wakeUp()`` afterwards. A source can
  /// be in any number of modes of any number of loops, and keeps a loop alive in each of its modes.
  ///
  /// The corresponding Core Foundation type is `CFRunLoopSource`.
  public final class Source: @unchecked Sendable {
    // Sendable: the lock guards the memberships and the mode calls, and the reference guards the closures.

    /// The source's priority; sources with a smaller order are performed first.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceGetOrder`.
    public let order: Int

    private let lock = Lock()
    /// The mark is set while the source is signalled.
    let reference = HandlerReference(marks: HandlerReference.Bits.unlisted)
    /// The position of the source's first signal in the order of all signals.
    ///
    /// Relaxed ordering suffices because the value is stored before the mark, which publishes it.
    private let signalSequence = Atomic<UInt64>(0)
    /// The number of the latest signal when a run that returns after one source last performed this source.
    ///
    /// Relaxed ordering suffices because the value is only compared with other signal numbers.
    let lastTurn = Atomic<UInt64>(0)
    @exclusivity(unchecked) private var memberships = Memberships<Source>()
    /// The `schedule` and `cancel` call-outs that are due or running.
    @exclusivity(unchecked) private var modeCalls = ModeCallTable()
    /// Whether the source has a `schedule` or `cancel` closure.
    private let hasModeCalls: Bool
    /// The closures, until they are released.
    @exclusivity(unchecked) private var body: Body?

    /// Noncopyable: the source's own references to the closures, which the handler reference protects, suffice for a
    /// call.
    private struct Body: ~Copyable {
      let perform: Block
      let schedule: ModeCall?
      let cancel: ModeCall?
      /// The call-out's name in descriptions, where Core Foundation's descriptions name the function.
      let label: StaticString?
    }

    /// Wrapped in the same way as ``Block``.
    private struct ModeCall {
      let body: @Sendable (RunLoop, RunLoop.Mode) -> Void
    }

    /// A reference for passing a source to its own closure, during whose call the loop retains the source.
    private final class Itself: @unchecked Sendable {
      // Sendable: written once, before the source is shared.
      unowned(unsafe) var source: Source?
    }

    /// Creates a source that is in no mode.
    ///
    /// Calls of `schedule` and `cancel` are balanced. For each mode of each loop, they alternate and never overlap:
    /// each `schedule` is followed by a `cancel` once the source has been removed from the mode, and there is no
    /// `cancel` without a `schedule`. If the source is removed from a mode while its `schedule` is running, the thread
    /// that runs it calls `cancel` when it returns; the thread that removed the source does not wait for that. If the
    /// source is removed before its `schedule` has begun, neither is called.
    ///
    /// All three closures are released once the source is invalid and none of them is running.
    ///
    /// - Parameters:
    ///   - order: The source's priority; smaller orders are performed first, and sources of equal order in the order
    ///     of their signals. In runs that return after a source, each other source passes over a waiting one at most
    ///     once. Defaults to 0.
    ///   - schedule: Called on the adding thread when the source is added to a concrete mode of a loop. Defaults to
    ///     `nil`.
    ///   - cancel: Called when the source is removed from a concrete mode of a loop: on the thread that removes or
    ///     invalidates it, or on the loop's own thread when that thread ends. Defaults to `nil`.
    ///   - perform: Called on a loop's thread, once for each signal that has not been handled yet.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceCreate`.
    public convenience init(
      order: Int = 0,
      schedule: (@Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil,
      cancel: (@Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil,
      perform: @escaping @Sendable () -> Void
    ) {
      self.init(label: nil, order: order, schedule: schedule, cancel: cancel, perform: perform)
    }

    /// Creates a source whose call-out has a name in descriptions.
    package init(
      label: StaticString?, order: Int = 0, schedule: (@Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil,
      cancel: (@Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil, perform: @escaping @Sendable () -> Void
    ) {
      self.order = order
      hasModeCalls = schedule != nil || cancel != nil
      // Not written with `map`: generic code would wrap the closures, whose function addresses identify them.
      let scheduleCall: ModeCall? = if let schedule { ModeCall(body: schedule) } else { nil }
      let cancelCall: ModeCall? = if let cancel { ModeCall(body: cancel) } else { nil }
      body = Body(perform: Block(body: perform), schedule: scheduleCall, cancel: cancelCall, label: label)
      noteSignalsIfRecorded()
    }

    /// Creates a source that is in no mode and is passed to its own closure.
    ///
    /// The closure can signal, remove or invalidate its own source without capturing it, which would create a
    /// reference cycle. It is released once the source is invalid and no call-out is running.
    ///
    /// - Parameters:
    ///   - order: The source's priority; smaller orders are performed first, and sources of equal order in the order
    ///     of their signals. In runs that return after a source, each other source passes over a waiting one at most
    ///     once. Defaults to 0.
    ///   - performing: Called with the source on a loop's thread, once for each signal that has not been handled yet.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceCreate`, with the source as the context's `info`.
    public convenience init(order: Int = 0, performing: @escaping @Sendable (Source) -> Void) {
      let itself = Itself()
      self.init(order: order, perform: { if let source = itself.source { performing(source) } })
      itself.source = self
    }

    /// Marks the source to be performed in the next pass of a loop in one of its modes.
    ///
    /// A source that is signalled again before it was performed keeps its position and is performed once. If the
    /// source is in no mode, the signal is kept until it is added to one. An invalid source ignores the signal.
    /// Signalling does not wake a loop. Can be called from any thread, but not from a signal handler because it takes
    /// a lock; use `SignalSource` from `RunLoopSystemEvents` there. The corresponding Core Foundation function is
    /// `CFRunLoopSourceSignal`.
    @inline(never)
    public func signal() {
      var word = reference.word.load(ordering: .relaxed)
      // A marked source keeps its position. The read-modify-write publishes this thread's stores to the call-out that
      // clears the mark; a plain load would publish nothing and might read a stale value.
      if word & HandlerReference.Bits.mark != 0 {
        word = reference.word.bitwiseOr(0, ordering: .acquiringAndReleasing).oldValue
      }
      let isDone = HandlerReference.Bits.mark | HandlerReference.Bits.closed
      guard word & (isDone | HandlerReference.Bits.noted) == 0 else {
        if word & isDone == 0 { signalNoted(from: crl_return_address()) }
        return
      }
      mark(SignalOrder.next())
    }

    @inline(__always)
    private func mark(_ sequence: UInt64) {
      signalSequence.store(sequence, ordering: .relaxed)
      let before = reference.word.bitwiseOr(HandlerReference.Bits.mark, ordering: .sequentiallyConsistent).oldValue
      if before & HandlerReference.Bits.unlisted != 0 { list() }
    }

    @inline(never)
    private func signalNoted(from site: UInt64) {
      let sequence = SignalOrder.next()
      if crl_level_get() >= CRL_RECORD.rawValue {
        Origin.note(self, tag: Origin.tag(sequence), site: site)
      } else {
        reference.word.bitwiseAnd(~HandlerReference.Bits.noted, ordering: .relaxed)
      }
      mark(sequence)
    }

    /// Whether the source has been signalled and not performed yet, initially `false`.
    ///
    /// Can be read from any thread. The corresponding Core Foundation function is `CFRunLoopSourceIsSignalled`.
    public var isSignalled: Bool {
      reference.word.load(ordering: .acquiring) & (HandlerReference.Bits.mark | HandlerReference.Bits.closed)
        == HandlerReference.Bits.mark
    }

    /// Whether the source can still be added and performed.
    ///
    /// Initially `true`. Can be read from any thread.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceIsValid`.
    public var isValid: Bool { reference.isOpen }

    /// Removes the source from all modes of all loops permanently, with a `cancel` call-out for each.
    ///
    /// The closures are released immediately or, if one is running, when it returns. Can be called from any thread.
    /// Calling it again has no effect. The corresponding Core Foundation function is `CFRunLoopSourceInvalidate`.
    public func invalidate() {
      guard reference.enter() else { return }
      lock.lock()
      let isFirst = reference.close() != .already
      let loops = memberships.loops
      lock.unlock()
      if isFirst { for loop in loops { loop.expel(self) } }
      letGo()
    }
  }
}

extension RunLoop.Source {
  /// The position of the first signal; of several signalled sources of equal order, the lowest is performed first.
  var signalOrder: UInt64 { signalSequence.load(ordering: .relaxed) }

  /// Records the places that signal the source from now on, if recording is active.
  ///
  /// If it is not, signalling the source requires no further check.
  @inline(__always)
  func noteSignalsIfRecorded() {
    if Instruments.record { reference.word.bitwiseOr(HandlerReference.Bits.noted, ordering: .relaxed) }
  }

  /// Adds the source to the list of signalled sources of each of its modes.
  ///
  /// A loop that removes an unsignalled source from its list sets ``HandlerReference/Bits/unlisted`` in the same word
  /// as the signal. Either the loop sees the signal and keeps the source, or the signalling thread sees the bit and
  /// calls this function.
  private func list() {
    lock.lock()
    reference.word.bitwiseAnd(~HandlerReference.Bits.unlisted, ordering: .sequentiallyConsistent)
    memberships.forEach { $0.loop.noteSignalled($0) }
    lock.unlock()
  }

  /// Marks the source as unlisted if it is not signalled, and returns whether the caller should remove it from its
  /// list.
  ///
  /// Requires the table lock of the list's loop.
  func unlist() -> Bool {
    let marks = HandlerReference.Bits.mark | HandlerReference.Bits.closed
    return reference.change { $0 & marks == HandlerReference.Bits.mark ? nil : $0 | HandlerReference.Bits.unlisted }
      != nil
  }

  /// Clears the signal, and returns `true` to the one loop that must then perform the source.
  @inline(__always)
  func claimSignal() -> Bool {
    let marks = HandlerReference.Bits.mark | HandlerReference.Bits.closed
    return reference.change {
      $0 & marks == HandlerReference.Bits.mark ? $0 - HandlerReference.Bits.mark + HandlerReference.Bits.callOut : nil
    } != nil
  }

  /// Performs the source after its signal was claimed; must be called on the loop's thread.
  @inline(__always)
  func perform() {
    switch body {
    case .some(let body): runLoopIsCallingOutToASource0(body.perform.body)
    case nil: break
    }
    letGo()
  }

  /// The address of the user's function.
  ///
  /// Used on the loop's thread after it has claimed the signal, so the closures stay until the source has been
  /// performed.
  var code: UInt64 {
    switch body {
    case .some(let body): body.perform.code
    case nil: 0
    }
  }

  /// Makes the `schedule` and `cancel` call-outs that are due for modes of a loop, unless another thread is making
  /// them.
  ///
  /// Called with no locks held by the code that added or removed the source. The caller must hold the source.
  func callForModes(_ modes: ShortList<ModeState>, of loop: RunLoop) {
    guard hasModeCalls else { return }
    for mode in modes {
      var next = lock.withLock { modeCalls.change(mode) { $0.begin() } }
      while let call = next {
        makeCall(call, loop, mode.name)
        next = lock.withLock {
          modeCalls.change(mode) { calls in
            calls.end()
            return calls.begin()
          }
        }
      }
    }
  }

  private func makeCall(_ call: ModeCalls.Call, _ loop: RunLoop, _ mode: RunLoop.Mode) {
    let (kind, made) =
      switch body {
      case .some(let body): call == .schedule ? (CRL_KIND_SCHEDULE, body.schedule) : (CRL_KIND_CANCEL, body.cancel)
      case nil: (CRL_KIND_CANCEL, nil)
      }
    guard let made else { return }
    callingOnThisThread(kind, code: ClosureCode.first(of: made), item: itemAddress(self)) {
      switch call {
      case .schedule: runLoopIsCallingOutToASourceSchedule(made.body, loop, mode)
      case .cancel: runLoopIsCallingOutToASourceCancel(made.body, loop, mode)
      }
    }
  }

  /// Takes the closures before they are released, so that code run by their release finds the source without them.
  func releaseClosures() { _ = body.take() }
}

extension RunLoop.Source: ModeItem {
  func lockItem() { lock.lock() }
  func unlockItem() { lock.unlock() }
  func hold() -> Bool { reference.enter() }
  func letGo() { if reference.leave() { releaseClosures() } }
  var isOpen: Bool { reference.isOpen }
  func setCommon(_ isCommon: Bool, of loop: RunLoop) { memberships.setCommon(isCommon, of: loop) }
  func modes(of loop: RunLoop) -> ShortList<ModeState> { memberships.modes(of: loop) }
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { mode.sources[ObjectIdentifier(self)] != nil }

  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) {
    let membership = Membership(self, loop: loop, mode: mode)
    memberships.insert(membership)
    if hasModeCalls { modeCalls.change(mode) { $0.enter() } }
    // The bit is set first, so that a thread that signals the source from now on lists it once the lock is free.
    reference.word.bitwiseOr(HandlerReference.Bits.unlisted, ordering: .sequentiallyConsistent)
    noteSignalsIfRecorded()
    mode.insert(membership, isSignalled: isSignalled)
  }

  func leave(_ mode: ModeState, of loop: RunLoop) {
    guard let membership = mode.removeSource(self) else { return }
    memberships.remove(membership)
    if hasModeCalls { modeCalls.change(mode) { $0.leave() } }
    loop.forgetPlace(of: self)
  }
}

extension RunLoop.Source: CustomDebugStringConvertible {
  /// A description of the source's state, formatted like Core Foundation's.
  public var debugDescription: String {
    "<RunLoop.Source \(addressDescription(self))>{signalled = \(yesOrNo(isSignalled)), valid = \(yesOrNo(isValid)), "
      + "order = \(order), version = 0, \(label.map { "callout = \($0)" } ?? callOutDescription(heldCode { code }))}"
  }

  private var label: StaticString? {
    guard reference.enter() else { return nil }
    defer { letGo() }
    switch body {
    case .some(let body): return body.label
    case nil: return nil
    }
  }
}

/// The order of the first signals of all sources, including the hand-off sources.
enum SignalOrder {
  // Relaxed ordering suffices: each number is issued once, and a signal that happens after another gets a larger one.
  private static let last = Atomic<UInt64>(0)

  static func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }

  /// The number of the latest signal.
  static var current: UInt64 { last.load(ordering: .relaxed) }
}
