// SPDX-License-Identifier: Apache-2.0

/// The recognisers of a view: those that were added, and those that get touches.
///
/// They differ from a change to the end of its turn.
@MainActor
struct GestureList {
  fileprivate(set) var all: [GestureRecognizer] = []
  private(set) var active: [GestureRecognizer] = []

  init() {}

  /// Lets the change take effect; returns those that get no touches any more.
  mutating func settle() -> [GestureRecognizer] {
    let before = active
    active = all.filter(\.isEnabled)
    return before.filter { recognizer in !active.contains { $0 === recognizer } }
  }
}

extension View {
  /// The recognisers on the view, in the order in which they were added.
  public final var gestureRecognizers: [GestureRecognizer] { recognizers.all }

  /// Adds a recogniser; it leaves the view that it is on.
  ///
  /// It gets touches that begin after the actions of this turn were called.
  public final func addGestureRecognizer(_ recognizer: GestureRecognizer) {
    recognizer.view?.removeGestureRecognizer(recognizer)
    recognizers.all.append(recognizer)
    recognizer.view = self
    recognizersDidChange()
  }

  /// Removes a recogniser.
  ///
  /// If its gesture is being recognised, it reports the cancellation when the actions of this turn are called.
  public final func removeGestureRecognizer(_ recognizer: GestureRecognizer) {
    guard recognizer.view === self else { return }
    recognizer.view = nil
    recognizers.all.removeAll { $0 === recognizer }
    recognizersDidChange()
  }

  /// A recogniser was added, removed, enabled or disabled.
  final func recognizersDidChange() {
    if let gestures = window?.application?.gestures {
      gestures.setNeedsSettling(self)
    } else {
      _ = recognizers.settle()
    }
  }

  /// The view has entered a window, or has left one: what its recognisers were about to recognise is over.
  final func recognizersDidMove() {
    guard !recognizers.all.isEmpty || !recognizers.active.isEmpty else { return }
    for recognizer in recognizers.active { recognizer.environment?.leave(recognizer) }
    recognizersDidChange()
  }
}
