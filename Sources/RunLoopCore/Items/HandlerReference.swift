// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Releases an item's closures as soon as the item is invalid and no call-out is running.
///
/// A call-out enters and leaves the reference, and invalidation closes it. The caller that receives `release` is the
/// last one, and releases the closures. The same word holds the item's marks, so that setting a mark and entering is a
/// single atomic step.
struct HandlerReference: ~Copyable {
  enum Closing {
    /// The reference was already closed.
    case already
    /// The reference is now closed and no call-out is inside, so the caller releases the closures.
    case release
    /// The reference is now closed; the last call-out to leave releases the closures.
    case later
  }

  /// The flag bits of the word, above which the call-outs inside are counted in units of ``callOut``.
  enum Bits {
    static let closed: UInt32 = 1
    /// The source is signalled, or the observer is being called.
    static let mark: UInt32 = 2
    /// The source is missing from the list of signalled sources of at least one of its modes.
    static let unlisted: UInt32 = 4
    /// Places that signal the source are noted; set during recording, and cleared by the first signal after it.
    static let noted: UInt32 = 8
    static let callOut: UInt32 = 16
  }

  // Relaxed ordering suffices for the first and failed values of an exchange, and for changes of ``Bits/noted`` alone,
  // on which no other memory depends.
  let word: Atomic<UInt32>

  init(marks: UInt32 = 0) { word = Atomic(marks) }

  var isOpen: Bool { word.load(ordering: .acquiring) & Bits.closed == 0 }

  /// Enters for one call-out, and returns `false` if the reference is closed.
  @inline(__always)
  borrowing func enter() -> Bool {
    change { $0 & Bits.closed == 0 ? $0 + Bits.callOut : nil } != nil
  }

  /// Leaves after a call-out.
  ///
  /// Returns `true` if the reference is closed and this was the last call-out inside; the caller then releases the
  /// closures.
  @inline(__always)
  borrowing func leave() -> Bool {
    isLast(word.wrappingSubtract(Bits.callOut, ordering: .acquiringAndReleasing).newValue)
  }

  /// Sets the mark and enters, or returns `false` if the reference is closed or the mark is set.
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

  /// Replaces the word with the result of `next` and returns the old value, or `nil` if `next` returns `nil`.
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
