// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Finds a gesture in the touches on a view and on its subviews.
///
/// A recogniser gets each touch before the view that was hit. When it recognises its gesture, the touch is taken from
/// the view, and the recogniser's action is put on a list, together with its state. The actions are called when the
/// loop is about to wait, in an observer of the order `TurnOrder.queues`, before the commit; never while an event is
/// being handled. Calls that an action causes, as by setting ``state``, are made in another round of the same observer.
/// After ``Window/layoutRounds`` rounds the rest waits for the next turn, and that is reported on the standard error.
///
/// A subclass overrides the functions for touches and sets ``state``: for a discrete gesture to `recognized`, for a
/// continuous gesture to `began`, `changed` and `ended`. If the gesture is no longer possible, it sets `failed`.
///
/// The corresponding class of UIKit is `UIGestureRecognizer`.
@MainActor
open class GestureRecognizer {
  /// The progress of a gesture.
  public enum State: Hashable, Sendable, CaseIterable {
    /// Nothing has been recognised so far.
    case possible
    /// A continuous gesture has begun.
    case began
    /// A continuous gesture goes on.
    case changed
    /// A continuous gesture has ended.
    case ended
    /// A continuous gesture was interrupted.
    case cancelled
    /// The touch is another gesture, or none.
    case failed
    /// A discrete gesture was made.
    case recognized
  }

  /// The name in logs; nil means the name of the type.
  public var name: String?
  /// The view whose touches the recogniser gets; nil if it is on none.
  public internal(set) final weak var view: View?
  /// The button whose touches the recogniser gets.
  public var button = MouseEvent.Button.left
  /// Whether the touch is taken from the view that was hit when the gesture is recognised.
  public var cancelsTouchesInView = true
  /// Whether the recogniser gets touches.
  ///
  /// A change takes effect when the turn's actions are called; a gesture that is being recognised is cancelled then.
  public var isEnabled = true {
    didSet { if isEnabled != oldValue { view?.recognizersDidChange() } }
  }

  /// What a call of the action is about: the state and the places as they were when it was reported.
  struct Report: Hashable {
    var state: State
    var start: Point
    var location: Point
  }

  private let action: @MainActor (GestureRecognizer) -> Void

  /// The action by itself, so that a record names it.
  private struct Action {
    let call: @MainActor (GestureRecognizer) -> Void
  }

  var machine = GestureState()
  /// The touch that is being followed.
  var touch: Touch?
  private var start = Point.zero
  private var lastLocation = Point.zero
  /// What the action is being called for.
  var report: Report?
  weak var environment: GestureEnvironment?
  private let number: Int
  private var simultaneous: Set<Int> = []
  private(set) var required: [Requirement] = []
  private var timer: Timer?
  private static var lastNumber = 0

  /// Another recogniser that has to fail first.
  struct Requirement {
    weak var recognizer: GestureRecognizer?
  }

  /// Makes a recogniser that is on no view.
  ///
  /// - Parameter action: Called with the recogniser for each state except `failed` and `possible`. While it is called,
  ///   ``state`` and the places are those that the call is for; of several `changed` that follow each other only the
  ///   last is reported.
  public init(_ action: @escaping @MainActor (GestureRecognizer) -> Void) {
    self.action = action
    Self.lastNumber += 1
    number = Self.lastNumber
  }

  deinit { timer?.invalidate() }

  /// The progress of the gesture; during the action, the state that it is called for.
  ///
  /// Subclasses set it. A state that cannot follow the previous one is ignored. If the action sets it, the action is
  /// called again in the same turn, up to ``Window/layoutRounds`` times, and then in the next turn.
  public final var state: State {
    get { report?.state ?? machine.state }
    set { environment?.request(newValue, of: self) }
  }

  /// Whether the gesture was recognised, and is reported when others have failed.
  final var isHeld: Bool { machine.isHeld }

  /// Where in the window the touch began.
  public final var startLocation: Point { report?.start ?? start }

  /// Where in the window the touch is, or was last.
  public final var location: Point { report?.location ?? touch?.location ?? lastLocation }

  /// Where the touch is, or was last, in the coordinates of a view.
  public final func location(in view: View) -> Point { view.convert(location, from: nil) }

  // MARK: Others

  /// Makes this gesture be recognised only when another has failed: a tap waits for a double tap.
  ///
  /// If the other gesture is recognised, this one fails.
  ///
  /// - Precondition: The other is not this one, and does not require this one to fail, by way of others neither: none
  ///   of them could ever be recognised.
  /// - Complexity: O(n) in the requirements of the other, and of those that it requires to fail.
  public final func require(toFail other: GestureRecognizer) {
    guard !other.isOrRequires(self) else {
      fatalError(
        "the recogniser \(displayName) cannot require \(other.displayName) to fail: that one waits for it already")
    }
    required.removeAll { $0.recognizer == nil || $0.recognizer === other }
    required.append(Requirement(recognizer: other))
  }

  /// Whether it is another, or requires it to fail, maybe by way of others.
  final func isOrRequires(_ other: GestureRecognizer) -> Bool {
    var seen: Set<ObjectIdentifier> = []
    var rest = [self]
    while let recognizer = rest.popLast() {
      if recognizer === other { return true }
      guard seen.insert(ObjectIdentifier(recognizer)).inserted else { continue }
      rest += recognizer.required.compactMap(\.recognizer)
    }
    return false
  }

  /// Allows both gestures to be recognised in one touch; otherwise the first that is recognised makes the other fail.
  public final func recognizeSimultaneously(with other: GestureRecognizer) {
    simultaneous.insert(other.number)
    other.simultaneous.insert(number)
  }

  /// Whether a gesture was recognised that this one requires to fail, maybe by way of others.
  final var requiresRecognized: Bool {
    required.contains { requirement in
      guard let other = requirement.recognizer else { return false }
      return other.machine.hasRecognized || other.requiresRecognized
    }
  }

  /// Whether the recogniser follows a touch; true, unless a subclass overrides it.
  ///
  /// It is called when the touch begins, before the recogniser gets it.
  open func shouldReceive(_ touch: Touch) -> Bool { true }

  /// Whether the other gesture fails when this one is recognised first.
  open func canPrevent(_ other: GestureRecognizer) -> Bool { !simultaneous.contains(other.number) }

  // MARK: For subclasses

  /// A touch began on the view, or on a view within it.
  open func touchesBegan(_ touch: Touch) {}

  /// The touch has moved.
  open func touchesMoved(_ touch: Touch) {}

  /// The touch has ended.
  ///
  /// A gesture that is neither recognised then nor waits for another touch fails.
  open func touchesEnded(_ touch: Touch) {}

  /// The touch was cancelled, and so is the gesture.
  open func touchesCancelled(_ touch: Touch) { abandon() }

  /// Whether the gesture takes more than one touch, and waits for the next.
  open var isWaitingForTouch: Bool { false }

  /// The time of a call of ``GestureRecognizer/startTimer(_:)`` has passed.
  open func timeOut() {}

  /// The gesture and the touch are over: an override forgets what it knows of them.
  open func reset() {}

  /// Has ``timeOut()`` called, once, when a time has passed, by the main loop's clock; starting again restarts it.
  public final func startTimer(_ duration: Duration) {
    guard let loop = environment?.loop else { return }
    let timer = timer ?? makeTimer(loop)
    self.timer = timer
    timer.move(after: duration)
  }

  /// Cancels the call of ``timeOut()``.
  public final func stopTimer() { timer?.park() }

  private func makeTimer(_ loop: RunLoop) -> Timer {
    // One that fires once would end with its first date: this one's dates are all set by hand.
    let timer = Timer(
      deadline: loop.now, interval: .seconds(1 << 28),
      block: MainActor.handler { [weak self] timer in
        timer.park()
        noteCall(on: self.map { type(of: $0) })
        self?.timeOut()
      })
    timer.park()
    loop.add(timer, forMode: .common)
    return timer
  }
}

// What the environment does with a recogniser.
extension GestureRecognizer {
  /// The name in logs.
  final var displayName: String { name ?? "\(type(of: self))" }

  /// Whether the gesture may still be recognised, in a touch that is under way or with the next.
  final var isUndecided: Bool { machine.state == .possible && (touch != nil || isWaitingForTouch || machine.isHeld) }

  final func follow(_ touch: Touch) {
    self.touch = touch
    start = touch.start
    lastLocation = touch.location
  }

  /// Sets the place of a gesture without a touch.
  final func place(at location: Point, begins: Bool) {
    if begins { start = location }
    lastLocation = location
  }

  final func leaveTouch() {
    if let touch { lastLocation = touch.location }
    touch = nil
  }

  /// What is reported now.
  final func makeReport(_ state: State) -> Report { Report(state: state, start: startLocation, location: location) }

  /// The gesture cannot go on.
  final func abandon() { state = machine.isRecognizing ? .cancelled : .failed }

  final func forget() {
    machine.reset()
    timer?.park()
    reset()
  }

  final func callAction(_ report: Report) {
    let outer = self.report
    self.report = report
    DisplayCallOut.note(closure: Action(call: action))
    action(self)
    self.report = outer
  }
}
