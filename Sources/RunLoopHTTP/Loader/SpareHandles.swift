// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

/// The idle handles, which are as many as were recently in use at once, so that a burst can reuse those of the
/// previous burst, and none after the client has been idle.
///
/// Used only on the loader's thread.
struct SpareHandles {
  /// The maximum number of idle handles, each of which takes about 20 KiB of libcurl's memory.
  static let limit = 1000
  /// The interval in nanoseconds at which surplus handles are freed.
  static let period: Int64 = 2_000_000_000

  private var handles: [Handle] = []
  /// The maximum number of handles in use since the last trim.
  private var peak = 0
  /// When the next trim is due; never if there are no idle handles.
  private(set) var due = Tick.never

  var count: Int { handles.count }

  /// Returns a handle that is set up for a shape, or one that is not set up; nil if there are no idle handles.
  mutating func take(_ shape: Handle.Shape?, inUse: Int) -> Handle? {
    peak = max(peak, inUse + 1)
    guard let handle = handles.popLast() else { return nil }
    if let known = handle.shape, known != shape { handle.reset() }
    return handle
  }

  mutating func put(_ handle: Handle, now: Tick) {
    guard handles.count < Self.limit else { return handle.free() }
    handle.rest()
    handles.append(handle)
    if due == .never { due = now + Self.period }
  }

  /// Frees the handles that were not needed since the last trim.
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
