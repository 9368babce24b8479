// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Guards what an item's call-out uses, so that it is released as soon as the item is invalid and no call-out runs.
///
/// A call-out enters and leaves; invalidation closes. The caller that gets `release` is the last, and releases the
/// closures. The same word holds the marks of the item, so that setting a mark and entering is one step.
struct HandlerReference: ~Copyable {
  enum Closing {
    /// It was closed before.
    case already
    /// It is closed now and no call-out is inside: the caller releases.
    case release
    /// It is closed now; the last call-out to leave releases.
    case later
  }

  /// The flags of the word, beside which it counts the call-outs inside, in steps of ``callOut``.
  enum Bits {
    static let closed: UInt32 = 1
    /// A source is signalled, or an observer is being called.
    static let mark: UInt32 = 2
    /// A source is not in the lists of signalled sources of all its modes.
    static let unlisted: UInt32 = 4
    /// The place that signals a source is noted, because something records; or something did, and the source was not
    /// signalled since.
    static let noted: UInt32 = 8
    static let callOut: UInt32 = 16
  }

  // Relaxed where a value is the first guess of an exchange, or one that did not succeed, and where only ``Bits/noted``
  // changes, which says nothing of other memory.
  let word: Atomic<UInt32>

  init(marks: UInt32 = 0) { word = Atomic(marks) }

  var isOpen: Bool { word.load(ordering: .acquiring) & Bits.closed == 0 }

  /// Enters for one call-out; returns false once closed.
  @inline(__always)
  borrowing func enter() -> Bool {
    change { $0 & Bits.closed == 0 ? $0 + Bits.callOut : nil } != nil
  }

  /// Leaves after a call-out; returns true if the reference is closed and this was the last one inside: the caller
  /// releases.
  @inline(__always)
  borrowing func leave() -> Bool {
    isLast(word.wrappingSubtract(Bits.callOut, ordering: .acquiringAndReleasing).newValue)
  }

  /// Sets the mark and enters; returns false once closed, and while the mark is set.
  @inline(__always)
  borrowing func enterMarking() -> Bool {
    change { $0 & (Bits.closed | Bits.mark) == 0 ? $0 + Bits.callOut + Bits.mark : nil } != nil
  }

  /// Clears the mark and leaves, as ``leave()`` does.
  @inline(__always)
  borrowing func leaveUnmarking() -> Bool {
    isLast(word.wrappingSubtract(Bits.callOut + Bits.mark, ordering: .acquiringAndReleasing).newValue)
  }

  borrowing func close() -> Closing {
    let before = word.bitwiseOr(Bits.closed, ordering: .acquiringAndReleasing).oldValue
    if before & Bits.closed != 0 { return .already }
    return before < Bits.callOut ? .release : .later
  }

  /// Changes the word to what `next` returns for its current value, or not at all for nil; returns the value before.
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
