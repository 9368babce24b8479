// SPDX-License-Identifier: Apache-2.0

/// A mode's observers by activity, in lists that the loop's thread reads without a lock.
///
/// The lists are immutable. The mode holds the current instance, and an activity in progress holds the instance with
/// which it began, which the mode may have replaced meanwhile. All holders are on the loop's thread, so they are
/// counted without atomic operations, and observers need not be retained for a call.
final class ObserverLists {
  /// The activities that have an observer.
  let activities: RunLoop.Activity
  private let members: UnsafeMutableBufferPointer<Unmanaged<RunLoop.Observer>>
  /// The boundaries of each activity's observers within `members`.
  private let bounds: UnsafeMutableBufferPointer<Int>
  @exclusivity(unchecked) private var holders = 0

  /// Creates lists without a holder.
  init(_ observers: ContiguousArray<RunLoop.Observer>) {
    let stages = RunLoop.Activity.stages
    activities = observers.reduce(into: []) { $0.formUnion($1.activities) }
    bounds = .allocate(capacity: stages.count + 1)
    bounds.initialize(repeating: 0)
    var listed: ContiguousArray<Unmanaged<RunLoop.Observer>> = []
    for (index, stage) in stages.enumerated() {
      for observer in observers where observer.activities.contains(stage) { listed.append(.passRetained(observer)) }
      bounds[index + 1] = listed.count
    }
    members = .allocate(capacity: listed.count)
    _ = members.initialize(fromContentsOf: listed)
  }

  deinit {
    for member in members { member.release() }
    members.deallocate()
    bounds.deallocate()
  }

  /// The observers of one activity.
  @inline(__always)
  private subscript(activity: RunLoop.Activity) -> Slice<UnsafeMutableBufferPointer<Unmanaged<RunLoop.Observer>>> {
    let stage = activity.stageIndex
    return members[bounds[stage]..<bounds[stage + 1]]
  }

  /// Calls the observers of one activity, and keeps track of the one being called.
  @inline(__always)
  static func call(_ activity: RunLoop.Activity, of lists: Unmanaged<ObserverLists>, by loop: RunLoop) {
    lists._withUnsafeGuaranteedRef { lists in
      lists.holders += 1
      let outer = loop.calledObservers.begin()
      for member in lists[activity] {
        loop.calledObservers.innermost = member
        member._withUnsafeGuaranteedRef { $0.call(activity) }
      }
      loop.calledObservers.end(outer)
    }
    letGo(lists)
  }

  /// Adds the first holder.
  static func held(_ lists: ObserverLists) -> Unmanaged<ObserverLists> {
    lists.holders += 1
    return .passRetained(lists)
  }

  /// Removes a holder; removing the last one may release observers and so run arbitrary code.
  @inline(__always)
  static func letGo(_ lists: Unmanaged<ObserverLists>) {
    let isLast = lists._withUnsafeGuaranteedRef { lists in
      lists.holders -= 1
      return lists.holders == 0
    }
    if isLast { lists.release() }
  }
}
