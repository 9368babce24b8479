// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions
import Synchronization

/// The gesture recognisers of an application: those that follow each touch, and the actions that are due.
@MainActor
final class GestureEnvironment {
  let loop: RunLoop
  weak var application: Application?
  /// The recognisers whose views are below the mouse.
  private var hovering: [HoverGestureRecognizer] = []
  /// The recognisers that follow each touch, from the view that was hit to its ancestors.
  private var sessions: [(touch: Touch, recognizers: [GestureRecognizer])] = []
  /// The recognisers that have recognised their gesture and wait for others to fail.
  private var held: [GestureRecognizer] = []
  private var pending = PendingActions()
  /// The views whose recognisers have changed in this turn.
  private var unsettled: [View] = []
  private var observer: RunLoop.Observer?
  /// Whether the observer has anything to do.
  ///
  /// Relaxed: it is used only on the loop's thread, and atomic because the observer's closure is nonisolated.
  private nonisolated let isDue = Atomic<Bool>(false)

  init(loop: RunLoop) { self.loop = loop }

  func start() {
    guard observer == nil else { return }
    let update = MainActor.handler { [weak self] in DisplayCallOut.make { self?.update() ?? () } }
    let observer = RunLoop.Observer(activities: .beforeWaiting, order: TurnOrder.queues) { [weak self] _, _ in
      // In most passes there is nothing to do.
      if let self, isDue.load(ordering: .relaxed) { update() }
    }
    self.observer = observer
    loop.add(observer, forMode: .common)
  }

  /// Whether actions are due.
  var hasActions: Bool { pending.count > 0 }

  func stop() {
    observer?.invalidate()
    observer = nil
  }

  func setNeedsSettling(_ view: View) {
    if !unsettled.contains(where: { $0 === view }) { unsettled.append(view) }
    isDue.store(true, ordering: .relaxed)
  }

  /// Applies changes of recognisers and calls the actions, in the observer that runs before the loop waits.
  ///
  /// Actions triggered by other actions are called in another round. After as many rounds as a layout has, the rest is
  /// postponed to the next turn, so that an action that triggers itself cannot block the loop.
  func update() {
    var round = 0
    repeat {
      guard round < Window.layoutRounds else { return postpone() }
      round += 1
      isDue.store(false, ordering: .relaxed)
      while let view = unsettled.popLast() { for recognizer in view.recognizers.settle() { leave(recognizer) } }
      for _ in 0..<pending.count {
        guard let (recognizer, report) = pending.takeFirst() else { break }
        application?.trace?.applicationDid(.action(name: recognizer.displayName, report.state))
        recognizer.callAction(report)
      }
    } while isDue.load(ordering: .relaxed) || pending.count > 0
    application?.gestureActionsWereCalled()
  }

  private func postpone() {
    let name = pending.next?.displayName ?? "a recogniser"
    Diagnostic.layout.report(
      "the actions of gestures caused further calls in \(Window.layoutRounds) rounds; the next turn goes on with \(name)"
    )
    isDue.store(true, ordering: .relaxed)
    loop.wakeUp()
    // Events do not wait for an action that always triggers another.
    application?.gestureActionsWereCalled()
  }
}

// Touches, in the order in which the window reports them.
extension GestureEnvironment {
  func began(_ touch: Touch) {
    var recognizers: [GestureRecognizer] = []
    var view = touch.view
    while let current = view {
      for recognizer in current.recognizers.active
      where recognizer.button == touch.button && recognizer.touch == nil
        && recognizer.machine.phase == .plain(.possible) && recognizer.shouldReceive(touch)
      {
        recognizers.append(recognizer)
      }
      view = current.superview
    }
    guard !recognizers.isEmpty else { return }
    sessions.append((touch, recognizers))
    for recognizer in recognizers {
      recognizer.environment = self
      recognizer.follow(touch)
    }
    forEach(of: touch) { $0.touchesBegan(touch) }
  }

  func moved(_ touch: Touch) { forEach(of: touch) { $0.touchesMoved(touch) } }

  func ended(_ touch: Touch) { forEach(of: touch) { $0.touchesEnded(touch) } }

  func cancelled(_ touch: Touch) { forEach(of: touch) { $0.touchesCancelled(touch) } }

  /// Resets the recognisers of a touch that has ended, unless they wait for another one.
  func finish(_ touch: Touch) {
    guard let index = sessions.firstIndex(where: { $0.touch === touch }) else { return }
    let recognizers = sessions.remove(at: index).recognizers
    for recognizer in recognizers where recognizer.touch === touch {
      if recognizer.machine.isHeld {
        // It is reported when the others have failed, and ends then.
        recognizer.state = .ended
      } else if !(recognizer.machine.state == .possible && recognizer.isWaitingForTouch) {
        recognizer.abandon()
      }
      recognizer.leaveTouch()
      switch recognizer.machine.state {
      case .possible: break
      case .began, .changed, .ended, .cancelled, .failed, .recognized: recognizer.forget()
      }
    }
  }

  /// Called when the mouse moves above a view without a button, or leaves the window, in which case the view is nil.
  func hovered(_ view: View?, _ location: Point) {
    var found: [HoverGestureRecognizer] = []
    var view = view
    while let current = view {
      found += current.recognizers.active.compactMap { $0 as? HoverGestureRecognizer }
      view = current.superview
    }
    for recognizer in hovering where !found.contains(where: { $0 === recognizer }) {
      hovering.removeAll { $0 === recognizer }
      recognizer.hover(.ended, location)
    }
    for recognizer in found {
      recognizer.environment = self
      if hovering.contains(where: { $0 === recognizer }) {
        recognizer.hover(.changed, location)
      } else {
        hovering.append(recognizer)
        recognizer.hover(.began, location)
      }
    }
  }

  private func forEach(of touch: Touch, _ body: (GestureRecognizer) -> Void) {
    guard let session = sessions.first(where: { $0.touch === touch }) else { return }
    for recognizer in session.recognizers where recognizer.touch === touch { body(recognizer) }
  }

  /// Removes a recogniser that receives no more touches.
  func leave(_ recognizer: GestureRecognizer) {
    hovering.removeAll { $0 === recognizer }
    guard recognizer.touch != nil || recognizer.isUndecided || recognizer.machine.isRecognizing else { return }
    recognizer.abandon()
    // The others may still follow the touch, of which this recogniser is no longer part.
    recognizer.leaveTouch()
    recognizer.forget()
  }
}

// State changes.
extension GestureEnvironment {
  /// Handles a recogniser's request to change its state.
  func request(_ state: GestureRecognizer.State, of recognizer: GestureRecognizer) {
    let recognizes = recognizer.machine.phase == .plain(.possible) && (state == .began || state == .recognized)
    if recognizes, isPrevented(recognizer) || !mayBegin(recognizer) { return request(.failed, of: recognizer) }
    let waits = recognizes && recognizer.required.contains { $0.recognizer?.isUndecided ?? false }
    perform(recognizer.machine.request(state, waits: waits), of: recognizer)
  }

  private func perform(_ action: GestureState.Action, of recognizer: GestureRecognizer) {
    switch action {
    case .nothing: break
    case .hold: held.append(recognizer)
    case .report(let state): report(state, of: recognizer)
    case .reportBoth(let first, let second):
      report(first, of: recognizer)
      report(second, of: recognizer)
    }
  }

  private func report(_ state: GestureRecognizer.State, of recognizer: GestureRecognizer) {
    application?.trace?.applicationDid(.gesture(state))
    held.removeAll { $0 === recognizer }
    if state != .failed {
      pending.append(recognizer, recognizer.makeReport(state))
      isDue.store(true, ordering: .relaxed)
    }
    switch state {
    case .began, .recognized:
      preventOthers(recognizer)
      if recognizer.cancelsTouchesInView, let touch = recognizer.touch { touch.window?.cancelDelivery(touch) }
    case .failed: releaseHeld()
    case .possible, .changed, .ended, .cancelled: break
    }
    // Without a touch, the recogniser is not reset elsewhere.
    switch state {
    case .ended, .cancelled, .failed, .recognized:
      if recognizer.touch == nil { recognizer.forget() }
    case .possible, .began, .changed: break
    }
  }

  /// Asks the view that was hit and the recogniser's view.
  private func mayBegin(_ recognizer: GestureRecognizer) -> Bool {
    let hit = recognizer.touch?.view
    if let hit, hit !== recognizer.view, !hit.gestureRecognizerShouldBegin(recognizer) { return false }
    return recognizer.view?.gestureRecognizerShouldBegin(recognizer) ?? true
  }

  /// Whether a recognised gesture rules this one out, either in the same touch or because this one requires it to fail.
  private func isPrevented(_ recognizer: GestureRecognizer) -> Bool {
    if recognizer.requiresRecognized { return true }
    guard let touch = recognizer.touch, let session = sessions.first(where: { $0.touch === touch }) else {
      return false
    }
    return session.recognizers.contains { other in
      other !== recognizer && other.touch === touch && other.machine.hasRecognized && other.canPrevent(recognizer)
    }
  }

  /// Fails all gestures that a recognised gesture rules out.
  private func preventOthers(_ recognizer: GestureRecognizer) {
    if let touch = recognizer.touch {
      forEach(of: touch) { other in
        if other !== recognizer, other.machine.state == .possible, recognizer.canPrevent(other) {
          other.state = .failed
        }
      }
    }
    // All are removed first, because ruling out a gesture does not count as the failure that another waits for.
    let ruledOut = held.filter { $0.isHeld && $0 !== recognizer && $0.isOrRequires(recognizer) }
    held.removeAll { other in ruledOut.contains { $0 === other } }
    for other in ruledOut { other.state = .failed }
  }

  /// Recognises held gestures once the gestures that they require to fail have failed.
  private func releaseHeld() {
    // Each release may cause others, so the list may have changed.
    for recognizer in held where recognizer.isHeld {
      guard !recognizer.required.contains(where: { $0.recognizer?.isUndecided ?? false }) else { continue }
      held.removeAll { $0 === recognizer }
      if isPrevented(recognizer) {
        recognizer.state = .failed
      } else {
        perform(recognizer.machine.release(), of: recognizer)
      }
    }
  }
}
