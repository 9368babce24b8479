// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// An object that recognises a gesture in the touches on a view and its subviews.
///
/// A recogniser receives each touch before the view that was hit. When it recognises its gesture, the touch is
/// cancelled for the view, and the recogniser's action is queued together with its state. Actions are not called while
/// an event is being handled, but before the loop waits, in an observer of the order `TurnOrder.queues`, ahead of the
/// commit. Actions that are triggered by other actions, such as by setting ``state``, are called in another round of
/// the same observer. After ``Window/layoutRounds`` rounds, the rest waits for the next turn, which is reported.
///
/// A subclass overrides the touch methods and sets ``state``: to `recognized` for a discrete gesture, or to `began`,
/// `changed` and `ended` for a continuous one. If the gesture is no longer possible, it sets `failed`.
///
/// The corresponding class of UIKit is `UIGestureRecognizer`.
@MainActor
open class GestureRecognizer {
  /// The state of a gesture.
  public enum State: Hashable, Sendable, CaseIterable {
    /// Nothing has been recognised so far.
    case possible
    /// A continuous gesture has begun.
    case began
    /// A continuous gesture has changed.
    case changed
    /// A continuous gesture has ended.
    case ended
    /// A continuous gesture was interrupted.
    case cancelled
    /// The touch does not match the gesture.
    case failed
    /// A discrete gesture was recognised.
    case recognized
  }

  /// The name in logs, or `nil` for the name of the type, which is the default.
  public var name: String?
  /// The view that the recogniser is attached to, or `nil`, the initial value, if there is none.
  public internal(set) final weak var view: View?
  /// The button whose touches the recogniser receives, `left` by default.
  public var button = MouseEvent.Button.left
  /// Whether the view that was hit has its touch cancelled when the gesture is recognised, `true` by default.
  public var cancelsTouchesInView = true
  /// Whether the recogniser receives touches, `true` by default.
  ///
  /// A change takes effect when the turn's actions are called, and cancels a gesture in progress.
  public var isEnabled = true {
    didSet { if isEnabled != oldValue { view?.recognizersDidChange() } }
  }

  /// The state and locations of a gesture at the time of a report, for which the action is called.
  struct Report: Hashable {
    var state: State
    var start: Point
    var location: Point
  }

  private let action: @MainActor (GestureRecognizer) -> Void

  /// Wraps the action so that records can name it.
  private struct Action {
    let call: @MainActor (GestureRecognizer) -> Void
  }

  var machine = GestureState()
  /// The touch that the recogniser follows.
  var touch: Touch?
  private var start = Point.zero
  private var lastLocation = Point.zero
  /// The report for which the action is being called.
  var report: Report?
  weak var environment: GestureEnvironment?
  private let number: Int
  private var simultaneous: Set<Int> = []
  private(set) var required: [Requirement] = []
  private var timer: Timer?
  private static var lastNumber = 0

  /// Another recogniser that must fail first.
  struct Requirement {
    weak var recognizer: GestureRecognizer?
  }

  /// Creates a recogniser that is not attached to a view.
  ///
  /// - Parameter action: A closure called with the recogniser for each state except `failed` and `possible`. During
  ///   the call, ``state`` and the locations are those at the time of the report. Only the last of several consecutive
  ///   `changed` reports is made.
  public init(_ action: @escaping @MainActor (GestureRecognizer) -> Void) {
    self.action = action
    Self.lastNumber += 1
    number = Self.lastNumber
  }

  deinit { timer?.invalidate() }

  /// The state of the gesture or, during the action, the state that the action is called for.
  ///
  /// Subclasses set it. A state that cannot follow the previous one is ignored. If the action sets it, the action is
  /// called again in the same turn, up to ``Window/layoutRounds`` times, and after that in the next turn.
  public final var state: State {
    get { report?.state ?? machine.state }
    set { environment?.request(newValue, of: self) }
  }

  /// Whether the gesture was recognised, and will be reported when others have failed.
  final var isHeld: Bool { machine.isHeld }

  /// The location in the window at which the touch began.
  public final var startLocation: Point { report?.start ?? start }

  /// The current or last location of the touch in the window.
  public final var location: Point { report?.location ?? touch?.location ?? lastLocation }

  /// Returns the current or last location of the touch in the coordinates of a view.
  public final func location(in view: View) -> Point { view.convert(location, from: nil) }

  // MARK: Other recognisers

  /// Requires another gesture to fail before this one is recognised, as with a tap and a double tap.
  ///
  /// If the other gesture is recognised, this one fails.
  ///
  /// - Precondition: The other recogniser is not this one, and does not directly or indirectly require it to fail.
  /// - Complexity: O(n), where n is the number of direct and indirect requirements of the other recogniser.
  public final func require(toFail other: GestureRecognizer) {
    guard !other.isOrRequires(self) else {
      fatalError(
        "the recogniser \(displayName) cannot require \(other.displayName) to fail: that one waits for it already")
    }
    required.removeAll { $0.recognizer == nil || $0.recognizer === other }
    required.append(Requirement(recognizer: other))
  }

  /// Whether this is another recogniser, or directly or indirectly requires it to fail.
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

  /// Allows both gestures to be recognised in one touch.
  ///
  /// Otherwise, the first gesture to be recognised makes the other fail.
  public final func recognizeSimultaneously(with other: GestureRecognizer) {
    simultaneous.insert(other.number)
    other.simultaneous.insert(number)
  }

  /// Whether a gesture was recognised that this one directly or indirectly requires to fail.
  final var requiresRecognized: Bool {
    required.contains { requirement in
      guard let other = requirement.recognizer else { return false }
      return other.machine.hasRecognized || other.requiresRecognized
    }
  }

  /// Whether the recogniser follows a touch, which is true by default.
  ///
  /// Called when the touch begins, before the recogniser receives it.
  open func shouldReceive(_ touch: Touch) -> Bool { true }

  /// Whether the other gesture fails if this one is recognised first.
  open func canPrevent(_ other: GestureRecognizer) -> Bool { !simultaneous.contains(other.number) }

  // MARK: Methods to override

  /// Called when a touch begins on the view or on a view within it.
  open func touchesBegan(_ touch: Touch) {}

  /// Called when the touch moves.
  open func touchesMoved(_ touch: Touch) {}

  /// Called when the touch ended.
  ///
  /// If the gesture has not been recognised then and does not wait for another touch, it fails.
  open func touchesEnded(_ touch: Touch) {}

  /// Called when the touch is cancelled, which cancels the gesture.
  open func touchesCancelled(_ touch: Touch) { abandon() }

  /// Whether the gesture consists of several touches and is waiting for the next one.
  open var isWaitingForTouch: Bool { false }

  /// Called when the time passed to ``GestureRecognizer/startTimer(_:)`` has elapsed.
  open func timeOut() {}

  /// Called when the gesture and the touch have ended.
  ///
  /// Override this method to discard what the recogniser recorded about them.
  open func reset() {}

  /// Calls ``timeOut()`` once after a duration, by the main loop's clock.
  ///
  /// A timer that is already running is restarted.
  public final func startTimer(_ duration: Duration) {
    guard let loop = environment?.loop else { return }
    let timer = timer ?? makeTimer(loop)
    self.timer = timer
    timer.move(after: duration)
  }

  /// Stops the timer, so that ``timeOut()`` is not called.
  public final func stopTimer() { timer?.park() }

  private func makeTimer(_ loop: RunLoop) -> Timer {
    // A one-shot timer would end after its first date. This one repeats, and each of its dates is set explicitly.
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

// Methods for the environment.
extension GestureRecognizer {
  final var displayName: String { name ?? "\(type(of: self))" }

  /// Whether the gesture may still be recognised, in the current touch or with the next one.
  final var isUndecided: Bool { machine.state == .possible && (touch != nil || isWaitingForTouch || machine.isHeld) }

  final func follow(_ touch: Touch) {
    self.touch = touch
    start = touch.start
    lastLocation = touch.location
  }

  /// Sets the location of a gesture without a touch.
  final func place(at location: Point, begins: Bool) {
    if begins { start = location }
    lastLocation = location
  }

  final func leaveTouch() {
    if let touch { lastLocation = touch.location }
    touch = nil
  }

  final func makeReport(_ state: State) -> Report { Report(state: state, start: startLocation, location: location) }

  /// Cancels the gesture, or makes it fail if it was not recognised.
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
