// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Where items were added, recorded at the level `watch` and above. The places are in a separate table, so that items
// do not grow. A place is a list of return addresses, innermost first. The first one outside this package is the
// user's; the reader of the addresses determines which one that is.

/// The callers of a function that adds an item.
package struct AddedPlace: Sendable {
  let frames: crl_frames

  /// Whether instruments are watching.
  @inline(__always)
  static var isWatched: Bool { Instruments.areBuilt && crl_level_get() >= CRL_WATCH.rawValue }

  /// Records the calling thread's stack frames, or returns `nil` if no instruments are watching.
  ///
  /// - Complexity: O(1), because at most eighteen frames are followed
  @inline(__always)
  package static func takeIfWatched() -> AddedPlace? { isWatched ? take() : nil }

  @inline(never)
  private static func take() -> AddedPlace {
    var frames = crl_frames()
    crl_frames_take(&frames)
    return AddedPlace(frames: frames)
  }

  /// The return addresses, innermost first.
  package var addresses: [UInt64] {
    withUnsafeBytes(of: frames) { Array($0.bindMemory(to: UInt64.self).prefix { $0 != 0 }) }
  }
}

extension RunLoop {
  /// Records where an item other than an observer was added, once it has entered a mode; requires the table's lock.
  @inline(__always)
  func note(_ place: AddedPlace?, of item: some ModeItem) {
    if let place, !(item is Observer) { additions[ObjectIdentifier(item)] = place.frames }
  }

  /// Forgets where an item was added after it has left a mode, unless it is still in another.
  ///
  /// Requires the table's lock, and also the item's lock if that guards the item's modes.
  @inline(__always)
  func forgetPlace(of item: some ModeItem) {
    if _slowPath(!additions.isEmpty) { forgetKnownPlace(of: item) }
  }

  @inline(never)
  private func forgetKnownPlace(of item: some ModeItem) {
    if item.modes(of: self).isEmpty { additions[ObjectIdentifier(item)] = nil }
  }

  /// Records the call site of the first hand-off, which adds the hand-off source to modes; can be called from any
  /// thread.
  @inline(__always)
  func noteHandOffPlace() {
    guard !hasNotedHandOff.load(ordering: .relaxed), let place = AddedPlace.takeIfWatched() else { return }
    table.withLock { _ in
      if !hasNotedHandOff.exchange(true, ordering: .relaxed) { handOffPlace = place }
    }
  }
}
