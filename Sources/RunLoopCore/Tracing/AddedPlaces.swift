// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Where items were added, from the level `watch` on. The places are in a table beside the items, so that no item grows.
// A place is the return addresses of the callers, the innermost first. The first of them that is not of this package is
// the user's; the reader of the addresses knows which that is.

/// The callers of a function that adds an item.
package struct AddedPlace: Sendable {
  let frames: crl_frames

  /// Whether something watches.
  @inline(__always)
  static var isWatched: Bool { Instruments.areBuilt && crl_level_get() >= CRL_WATCH.rawValue }

  /// Follows the frames of the calling thread; nil unless something watches.
  ///
  /// - Complexity: O(1): at most eighteen frames are followed.
  @inline(__always)
  package static func takeIfWatched() -> AddedPlace? { isWatched ? take() : nil }

  @inline(never)
  private static func take() -> AddedPlace {
    var frames = crl_frames()
    crl_frames_take(&frames)
    return AddedPlace(frames: frames)
  }

  /// The return addresses, the innermost first.
  package var addresses: [UInt64] {
    withUnsafeBytes(of: frames) { Array($0.bindMemory(to: UInt64.self).prefix { $0 != 0 }) }
  }
}

extension RunLoop {
  /// Notes where an item was added, if it has entered a mode; called under the table's lock.
  @inline(__always)
  func note(_ place: AddedPlace?, of item: some ModeItem) {
    if let place, !(item is Observer) { additions[ObjectIdentifier(item)] = place.frames }
  }

  /// Forgets where an item was added that has left a mode, unless it is in another.
  ///
  /// Called under the table's lock, and under the item's where that guards its modes.
  @inline(__always)
  func forgetPlace(of item: some ModeItem) {
    if _slowPath(!additions.isEmpty) { forgetKnownPlace(of: item) }
  }

  @inline(never)
  private func forgetKnownPlace(of item: some ModeItem) {
    if item.modes(of: self).isEmpty { additions[ObjectIdentifier(item)] = nil }
  }

  /// Notes the place that first handed over work, which adds the source for it to modes; can be called from any thread.
  @inline(__always)
  func noteHandOffPlace() {
    guard !hasNotedHandOff.load(ordering: .relaxed), let place = AddedPlace.takeIfWatched() else { return }
    table.withLock { _ in
      if !hasNotedHandOff.exchange(true, ordering: .relaxed) { handOffPlace = place }
    }
  }
}
