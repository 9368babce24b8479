// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Guards what an item's call-out uses, so that it is released as soon as the item is invalid and no call-out runs.
///
/// A call-out enters and leaves; invalidation closes. Who gets `release` is the last and gives up the closures.
/// In the same word stand two marks of the item, so that taking a mark and entering is one step.
struct HandlerReference: ~Copyable {
  enum Closing {
    /// It was closed before.
    case already
    /// It is closed now and nobody is inside: the caller releases.
    case release
    /// It is closed now; the last call-out to leave releases.
    case later
  }

  /// What the word says beside the number of call-outs inside, which is counted in steps of ``callOut``.
  enum Bits {
    static let closed: UInt32 = 1
    /// A source is signalled, an observer is being called.
    static let mark: UInt32 = 2
    /// A source stands in not all the lists of signalled sources of its modes.
    static let unlisted: UInt32 = 4
    /// Who signals a source is noted, as something records; or was, and nobody has signalled it since.
    static let noted: UInt32 = 8
    static let callOut: UInt32 = 16
  }

  let word: Atomic<UInt32>

  init(marks: UInt32 = 0) { word = Atomic(marks) }

  var isOpen: Bool { word.load(ordering: .acquiring) & Bits.closed == 0 }

  /// Enters for one call-out; false once closed.
  @inline(__always)
  borrowing func enter() -> Bool {
    change { $0 & Bits.closed == 0 ? $0 + Bits.callOut : nil } != nil
  }

  /// Leaves after a call-out; true: the reference is closed, this was the last inside, the caller releases.
  @inline(__always)
  borrowing func leave() -> Bool {
    isLast(word.wrappingSubtract(Bits.callOut, ordering: .acquiringAndReleasing).newValue)
  }

  /// Sets the mark and enters; false once closed, and while the mark is set.
  @inline(__always)
  borrowing func enterMarking() -> Bool {
    change { $0 & (Bits.closed | Bits.mark) == 0 ? $0 + Bits.callOut + Bits.mark : nil } != nil
  }

  /// Takes the mark away and leaves, as ``leave()``.
  @inline(__always)
  borrowing func leaveUnmarking() -> Bool {
    isLast(word.wrappingSubtract(Bits.callOut + Bits.mark, ordering: .acquiringAndReleasing).newValue)
  }

  borrowing func close() -> Closing {
    let before = word.bitwiseOr(Bits.closed, ordering: .acquiringAndReleasing).oldValue
    if before & Bits.closed != 0 { return .already }
    return before < Bits.callOut ? .release : .later
  }

  /// Changes the word as `next` says, from its value now, or not at all; returns the value before.
  @inline(__always)
  borrowing func change(_ next: (UInt32) -> UInt32?) -> UInt32? {
    var value = word.load(ordering: .relaxed)
    while let desired = next(value) {
      let (exchanged, original) = word.weakCompareExchange(
        expected: value, desired: desired, successOrdering: .acquiringAndReleasing, failureOrdering: .relaxed)
      if exchanged { return value }
      value = original
    }
    return nil
  }

  private borrowing func isLast(_ value: UInt32) -> Bool { value < Bits.callOut && value & Bits.closed != 0 }
}
