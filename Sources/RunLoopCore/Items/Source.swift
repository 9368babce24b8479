// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// A source that is signalled by hand (version 0).
  ///
  /// ``signal()`` marks the source; the loop that next makes a pass in one of its modes performs it, once. A signal
  /// does not wake a sleeping loop: follow it with ``RunLoop/wakeUp()``, as in Core Foundation. A source may be in any
  /// number of modes of any number of loops, and keeps a loop alive in each of its modes.
  ///
  /// The corresponding Core Foundation type is `CFRunLoopSource`.
  public final class Source: @unchecked Sendable {
    // Sendable: the memberships and the calls are guarded by the lock, the closures by the reference.

    /// Sources with a smaller order are performed first.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceGetOrder`.
    public let order: Int

    private let lock = Lock()
    /// Its mark says that the source is signalled.
    let reference = HandlerReference(marks: HandlerReference.Bits.unlisted)
    /// The place of the source's first signal in the order of all signals.
    ///
    /// Relaxed: it is stored before the mark, which publishes it.
    private let signalSequence = Atomic<UInt64>(0)
    /// The last signal of all when a run that returns after one source last performed this one.
    ///
    /// Relaxed: it is compared with other places in the order of signals, and is of no other memory.
    let lastTurn = Atomic<UInt64>(0)
    @exclusivity(unchecked) private var memberships = Memberships<Source>()
    /// The call-outs about modes that are due or running.
    @exclusivity(unchecked) private var modeCalls = ModeCallTable()
    /// Whether there is a closure to call about modes.
    private let hasModeCalls: Bool
    /// The closures, until they are released.
    @exclusivity(unchecked) private var body: Body?

    /// Not copied: a call needs no reference to the closures other than the source's, which the handler reference
    /// keeps.
    private struct Body: ~Copyable {
      let perform: Block
      let schedule: ModeCall?
      let cancel: ModeCall?
      /// The name of the call-out in descriptions, where Core Foundation's descriptions name the function.
      let label: StaticString?
    }

    /// Wrapped as ``Block`` is.
    private struct ModeCall {
      let body: @Sendable (RunLoop, RunLoop.Mode) -> Void
    }

    /// The source as it is passed to its own closure: the loop holds it during the call.
    private final class Itself: @unchecked Sendable {
      // Sendable: written once, before anybody else has the source.
      unowned(unsafe) var source: Source?
    }

    /// Makes a source that is in no mode.
    ///
    /// The calls of `schedule` and `cancel` are balanced. For each mode of each loop they are made in turn, one after
    /// the other: a `cancel` follows each `schedule` when the source has left the mode, and there is no `cancel`
    /// without a `schedule`. If the source leaves a mode while its `schedule` is still running, the thread that runs it
    /// calls `cancel` when it has returned, and the thread that took the source out does not wait for that. If the
    /// source leaves a mode before its `schedule` has begun, neither is called.
    ///
    /// All three closures are released when the source is invalid and none of them runs.
    ///
    /// - Parameters:
    ///   - order: Sources with a smaller order are performed first; among equals, the one signalled first. In runs that
    ///     return after a source, each other source passes over a waiting one at most once.
    ///   - schedule: Called on the adding thread when the source enters a concrete mode of a loop.
    ///   - cancel: Called when the source leaves a concrete mode of a loop: on the thread that removes or invalidates
    ///     it, or on the loop's own thread when that thread ends.
    ///   - perform: Called on a loop's thread once for each signal that was not yet performed.
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

    /// Makes a source whose call-out has a name in descriptions.
    package init(
      label: StaticString?, order: Int = 0, schedule: (@Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil,
      cancel: (@Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil, perform: @escaping @Sendable () -> Void
    ) {
      self.order = order
      hasModeCalls = schedule != nil || cancel != nil
      // Not by `map`: generic code would wrap the closures, whose functions serve as their names.
      let scheduleCall: ModeCall? = if let schedule { ModeCall(body: schedule) } else { nil }
      let cancelCall: ModeCall? = if let cancel { ModeCall(body: cancel) } else { nil }
      body = Body(perform: Block(body: perform), schedule: scheduleCall, cancel: cancelCall, label: label)
      noteSignalsIfRecorded()
    }

    /// Makes a source that is in no mode and whose closure receives the source.
    ///
    /// The closure can thus signal, remove or invalidate its own source without holding it, which would be a reference
    /// cycle. It is released when the source is invalid and no call-out runs.
    ///
    /// - Parameters:
    ///   - order: Sources with a smaller order are performed first; among equals, the one signalled first. In runs that
    ///     return after a source, each other source passes over a waiting one at most once.
    ///   - performing: Called with the source, on a loop's thread, once for each signal that was not yet performed.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceCreate`, with the source as the context's `info`.
    public convenience init(order: Int = 0, performing: @escaping @Sendable (Source) -> Void) {
      let itself = Itself()
      self.init(order: order, perform: { if let source = itself.source { performing(source) } })
      itself.source = self
    }

    /// Marks the source to be performed by the next pass of a loop in one of its modes.
    ///
    /// A source that is signalled again before it has run keeps its place and runs once. If the source is in no mode,
    /// the signal is kept until it is in one. An invalid source ignores the signal. This does not wake a loop. Can be
    /// called from any thread, but not in a signal handler, because it takes a lock: use a `SignalSource` of
    /// `RunLoopSystemEvents` there. The corresponding Core Foundation function is `CFRunLoopSourceSignal`.
    @inline(never)
    public func signal() {
      var word = reference.word.load(ordering: .relaxed)
      // A source that is marked keeps its place. What this thread has stored is for the call-out that clears the mark,
      // which acquires it by the same word: a load alone would release nothing, and might be of the time before.
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

    /// Whether the source is marked and not yet performed.
    ///
    /// Can be used from any thread.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceIsSignalled`.
    public var isSignalled: Bool {
      reference.word.load(ordering: .acquiring) & (HandlerReference.Bits.mark | HandlerReference.Bits.closed)
        == HandlerReference.Bits.mark
    }

    /// Whether the source can still be added and performed.
    ///
    /// Can be used from any thread.
    ///
    /// The corresponding Core Foundation function is `CFRunLoopSourceIsValid`.
    public var isValid: Bool { reference.isOpen }

    /// Ends the source permanently: it leaves all modes of all loops, with a `cancel` call-out for each.
    ///
    /// The closures are released at once, or when the running call-out has returned. Can be called from any thread.
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
  /// The order of the first signal; of several marked sources of equal order, the lower comes first.
  var signalOrder: UInt64 { signalSequence.load(ordering: .relaxed) }

  /// Notes the signals from now on, if something records.
  ///
  /// A source that nobody records thus has nothing more to check when it is signalled.
  @inline(__always)
  func noteSignalsIfRecorded() {
    if Instruments.record { reference.word.bitwiseOr(HandlerReference.Bits.noted, ordering: .relaxed) }
  }

  /// Puts the source into the list of signalled sources of each of its modes, unless it is there.
  ///
  /// A loop that takes an unsignalled source out of its list sets the bit ``HandlerReference/Bits/unlisted``, in the
  /// same word as the signal. So either the loop sees the signal and leaves the source in, or the signalling thread
  /// sees the bit and calls this function.
  private func list() {
    lock.lock()
    reference.word.bitwiseAnd(~HandlerReference.Bits.unlisted, ordering: .sequentiallyConsistent)
    memberships.forEach { $0.loop.noteSignalled($0) }
    lock.unlock()
  }

  /// Returns whether the source may leave a list of signalled sources because it is not signalled, and notes that it
  /// does.
  ///
  /// Called under the lock of the list's loop.
  func unlist() -> Bool {
    let marks = HandlerReference.Bits.mark | HandlerReference.Bits.closed
    return reference.change { $0 & marks == HandlerReference.Bits.mark ? nil : $0 | HandlerReference.Bits.unlisted }
      != nil
  }

  /// Takes the signal away; returns true to the one loop that then performs the source.
  @inline(__always)
  func claimSignal() -> Bool {
    let marks = HandlerReference.Bits.mark | HandlerReference.Bits.closed
    return reference.change {
      $0 & marks == HandlerReference.Bits.mark ? $0 - HandlerReference.Bits.mark + HandlerReference.Bits.callOut : nil
    } != nil
  }

  /// Performs the source whose signal was claimed; called on the loop's thread.
  @inline(__always)
  func perform() {
    switch body {
    case .some(let body): runLoopIsCallingOutToASource0(body.perform.body)
    case nil: break
    }
    letGo()
  }

  /// The user's function.
  ///
  /// Used on the loop's thread, which has claimed the signal: the closures stay until the source has been performed.
  var code: UInt64 {
    switch body {
    case .some(let body): body.perform.code
    case nil: 0
    }
  }

  /// Makes the `schedule` and `cancel` call-outs that are due for modes of a loop, unless a thread is making them.
  ///
  /// Called under no lock. The caller, which made the source enter or leave the modes, holds the source.
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

  /// Takes the closures out before they are released, so that code that their release runs finds the source without
  /// them.
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
    // The bit is set first: a thread that signals the source from now on lists it as soon as its lock is free.
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
  /// The item's state, in the shape of Core Foundation's description.
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

/// The order of all first signals of all sources, those of the hand-offs included.
enum SignalOrder {
  // Relaxed: each place is given once, and the later of two signals that are ordered by anything else has the greater.
  private static let last = Atomic<UInt64>(0)

  static func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }

  /// The place of the last signal so far.
  static var current: UInt64 { last.load(ordering: .relaxed) }
}
