// SPDX-License-Identifier: Apache-2.0

/// The observers of a mode, by the stages at which they are called: what the loop's thread reads without a lock.
///
/// A list never changes. The mode holds the current one, and each stage that is being called holds the one that it
/// began with, which the mode may have replaced meanwhile. All holders are on the loop's thread, so they are counted
/// without atomic operations, and retain no observer.
final class ObserverLists {
  /// The stages at which there is an observer.
  let activities: RunLoop.Activity
  private let members: UnsafeMutableBufferPointer<Unmanaged<RunLoop.Observer>>
  /// Where the observers of a stage begin, and those of the one before it end.
  private let bounds: UnsafeMutableBufferPointer<Int>
  @exclusivity(unchecked) private var holders = 0

  /// Makes lists that nobody holds.
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

  /// The observers of one stage.
  @inline(__always)
  private subscript(activity: RunLoop.Activity) -> Slice<UnsafeMutableBufferPointer<Unmanaged<RunLoop.Observer>>> {
    let stage = activity.stageIndex
    return members[bounds[stage]..<bounds[stage + 1]]
  }

  /// Calls the observers of one stage, and notes which is being called.
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

  /// Takes the first hold of the lists.
  static func held(_ lists: ObserverLists) -> Unmanaged<ObserverLists> {
    lists.holders += 1
    return .passRetained(lists)
  }

  /// Releases one hold of the lists; the last one ends them, which may release observers and so run any code.
  @inline(__always)
  static func letGo(_ lists: Unmanaged<ObserverLists>) {
    let isLast = lists._withUnsafeGuaranteedRef { lists in
      lists.holders -= 1
      return lists.holders == 0
    }
    if isLast { lists.release() }
  }
}
