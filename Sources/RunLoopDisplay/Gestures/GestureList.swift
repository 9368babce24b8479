// SPDX-License-Identifier: Apache-2.0

/// The recognisers of a view: all that were added, and the active ones, which receive touches.
///
/// The two lists differ only between a change and the end of its turn.
@MainActor
struct GestureList {
  fileprivate(set) var all: [GestureRecognizer] = []
  private(set) var active: [GestureRecognizer] = []

  init() {}

  /// Applies the change, and returns the recognisers that no longer receive touches.
  mutating func settle() -> [GestureRecognizer] {
    let before = active
    active = all.filter(\.isEnabled)
    return before.filter { recognizer in !active.contains { $0 === recognizer } }
  }
}

extension View {
  /// The recognisers attached to the view, in the order in which they were added.
  public final var gestureRecognizers: [GestureRecognizer] { recognizers.all }

  /// Attaches a recogniser to the view, and detaches it from its current view.
  ///
  /// It receives touches that begin after the actions of this turn have been called.
  public final func addGestureRecognizer(_ recognizer: GestureRecognizer) {
    recognizer.view?.removeGestureRecognizer(recognizer)
    recognizers.all.append(recognizer)
    recognizer.view = self
    recognizersDidChange()
  }

  /// Detaches a recogniser from the view.
  ///
  /// If its gesture is in progress, it reports the cancellation when the actions of this turn are called.
  public final func removeGestureRecognizer(_ recognizer: GestureRecognizer) {
    guard recognizer.view === self else { return }
    recognizer.view = nil
    recognizers.all.removeAll { $0 === recognizer }
    recognizersDidChange()
  }

  /// Called after a recogniser has been added, removed, enabled or disabled.
  final func recognizersDidChange() {
    if let gestures = window?.application?.gestures {
      gestures.setNeedsSettling(self)
    } else {
      _ = recognizers.settle()
    }
  }

  /// Called after the view has entered or left a window, which ends the gestures in progress.
  final func recognizersDidMove() {
    guard !recognizers.all.isEmpty || !recognizers.active.isEmpty else { return }
    for recognizer in recognizers.active { recognizer.environment?.leave(recognizer) }
    recognizersDidChange()
  }
}
