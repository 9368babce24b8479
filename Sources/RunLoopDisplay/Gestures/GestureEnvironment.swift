// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions
import Synchronization

/// The recognisers of an application: which of them follow a touch, what they have recognised, and whose action is to
/// be called.
@MainActor
final class GestureEnvironment {
  let loop: RunLoop
  weak var application: Application?
  /// Those that have the mouse above their views.
  private var hovering: [HoverGestureRecognizer] = []
  /// The recognisers that follow each touch: those of the view that was hit first, then its superview's.
  private var sessions: [(touch: Touch, recognizers: [GestureRecognizer])] = []
  /// Those that wait for others to fail.
  private var held: [GestureRecognizer] = []
  private var pending = PendingActions()
  /// The views whose recognisers have changed in this turn.
  private var unsettled: [View] = []
  private var observer: RunLoop.Observer?
  /// Whether the observer has anything to do.
  ///
  /// Relaxed: only the loop's thread uses it; it is atomic as the observer's closure is isolated to nothing.
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

  /// Whether actions wait for their call.
  var hasActions: Bool { pending.count > 0 }

  func stop() {
    observer?.invalidate()
    observer = nil
  }

  func setNeedsSettling(_ view: View) {
    if !unsettled.contains(where: { $0 === view }) { unsettled.append(view) }
    isDue.store(true, ordering: .relaxed)
  }

  /// What the observer does before the loop waits: lets changes of recognisers take effect, and calls the actions.
  ///
  /// What the actions cause is done in another round. After as many rounds as a layout has, the rest is left for the
  /// next turn: an action that causes its own call would otherwise keep the loop here.
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
    // A press does not wait for an action that always causes another, and the keys behind it do not either.
    application?.gestureActionsWereCalled()
  }
}

// Touches, in the order of the window's calls.
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

  /// The touch and its view are done: whoever does not wait for more is reset.
  func finish(_ touch: Touch) {
    guard let index = sessions.firstIndex(where: { $0.touch === touch }) else { return }
    let recognizers = sessions.remove(at: index).recognizers
    for recognizer in recognizers where recognizer.touch === touch {
      if recognizer.machine.isHeld {
        // It is reported when others have failed, and then is over.
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

  /// The mouse was moved above a view without a button; nil: it has left the window.
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

  /// A recogniser gets no touches any more.
  func leave(_ recognizer: GestureRecognizer) {
    hovering.removeAll { $0 === recognizer }
    guard recognizer.touch != nil || recognizer.isUndecided || recognizer.machine.isRecognizing else { return }
    recognizer.abandon()
    // While the others follow the touch on, it is not part of it.
    recognizer.leaveTouch()
    recognizer.forget()
  }
}

// States.
extension GestureEnvironment {
  /// A recogniser asks for a state.
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
    // Without a touch nobody else resets it.
    switch state {
    case .ended, .cancelled, .failed, .recognized:
      if recognizer.touch == nil { recognizer.forget() }
    case .possible, .began, .changed: break
    }
  }

  /// Asks the view that was hit, and the one that the recogniser is on.
  private func mayBegin(_ recognizer: GestureRecognizer) -> Bool {
    let hit = recognizer.touch?.view
    if let hit, hit !== recognizer.view, !hit.gestureRecognizerShouldBegin(recognizer) { return false }
    return recognizer.view?.gestureRecognizerShouldBegin(recognizer) ?? true
  }

  /// Whether a gesture that was recognised rules this one out: one that it requires to fail, or one in the same touch.
  private func isPrevented(_ recognizer: GestureRecognizer) -> Bool {
    if recognizer.requiresRecognized { return true }
    guard let touch = recognizer.touch, let session = sessions.first(where: { $0.touch === touch }) else {
      return false
    }
    return session.recognizers.contains { other in
      other !== recognizer && other.touch === touch && other.machine.hasRecognized && other.canPrevent(recognizer)
    }
  }

  /// Lets fail what a gesture that was recognised rules out.
  private func preventOthers(_ recognizer: GestureRecognizer) {
    if let touch = recognizer.touch {
      forEach(of: touch) { other in
        if other !== recognizer, other.machine.state == .possible, recognizer.canPrevent(other) {
          other.state = .failed
        }
      }
    }
    // All at once: one that is ruled out is no failure for which another has waited.
    let ruledOut = held.filter { $0.isHeld && $0 !== recognizer && $0.isOrRequires(recognizer) }
    held.removeAll { other in ruledOut.contains { $0 === other } }
    for other in ruledOut { other.state = .failed }
  }

  /// Lets those recognise their gestures whose obstacles have failed.
  private func releaseHeld() {
    // A release may cause others within it, so the list may have changed.
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
