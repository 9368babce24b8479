import Synchronization

/// Guards what an item's call-out uses, so that it is released as soon as the item is invalid and no call-out runs.
///
/// A call-out enters and leaves; invalidation closes. Whoever is told `release` is the last and gives up the closures.
struct Lease: ~Copyable {
  enum Closing {
    /// It was closed before.
    case already
    /// It is closed now and nobody is inside: the caller releases.
    case release
    /// It is closed now; the last call-out to leave releases.
    case later
  }

  /// The lowest bit says closed; the rest counts the call-outs inside.
  private let word = Atomic<UInt32>(0)

  var isOpen: Bool { word.load(ordering: .acquiring) & 1 == 0 }

  /// Enters for one call-out; false once closed.
  @inline(__always)
  borrowing func enter() -> Bool {
    var value = word.load(ordering: .relaxed)
    while value & 1 == 0 {
      let (exchanged, original) = word.weakCompareExchange(
        expected: value, desired: value + 2, successOrdering: .acquiring, failureOrdering: .relaxed)
      if exchanged { return true }
      value = original
    }
    return false
  }

  /// Leaves after a call-out; true: the lease is closed, this was the last inside, the caller releases.
  @inline(__always)
  borrowing func leave() -> Bool {
    word.wrappingSubtract(2, ordering: .acquiringAndReleasing).newValue == 1
  }

  borrowing func close() -> Closing {
    let before = word.bitwiseOr(1, ordering: .acquiringAndReleasing).oldValue
    if before & 1 != 0 { return .already }
    return before == 0 ? .release : .later
  }
}
