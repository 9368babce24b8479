// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

/// The handles that no attempt uses: as many as were lately in use at once besides, so that a burst finds those of the
/// burst before, and none when the client has rested.
///
/// The loader's thread.
struct SpareHandles {
  /// How many handles there are at most that nobody uses; each has some 20 KiB of the library's.
  static let limit = 1000
  /// After how many nanoseconds it is looked at how many were needed.
  static let period: Int64 = 2_000_000_000

  private var handles: [Handle] = []
  /// How many were in use at most since the last look.
  private var peak = 0
  /// When the next look is due; never as long as nothing can be given back.
  private(set) var due = Tick.never

  var count: Int { handles.count }

  /// One that is set up for requests of a shape if there is such a one at hand, otherwise one that is not set up; nil
  /// if there is none.
  mutating func take(_ shape: Handle.Shape?, inUse: Int) -> Handle? {
    peak = max(peak, inUse + 1)
    guard let handle = handles.popLast() else { return nil }
    if let known = handle.shape, known != shape { handle.reset() }
    return handle
  }

  /// Takes one back that nobody uses any more.
  mutating func put(_ handle: Handle, now: Tick) {
    guard handles.count < Self.limit else { return handle.free() }
    handle.rest()
    handles.append(handle)
    if due == .never { due = now + Self.period }
  }

  /// Gives back those that were not needed since the last look.
  mutating func trim(inUse: Int, now: Tick) {
    let kept = max(0, min(peak, Self.limit) - inUse)
    let surplus = max(0, handles.count - kept)
    for handle in handles[..<surplus] { handle.free() }
    handles.removeFirst(surplus)
    peak = inUse
    due = handles.isEmpty ? .never : now + Self.period
  }

  mutating func freeAll() {
    for handle in handles { handle.free() }
    handles = []
    due = .never
  }
}
