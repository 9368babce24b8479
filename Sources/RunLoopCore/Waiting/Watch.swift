import Synchronization

/// The sources of one descriptor, in one mode.
///
/// Guarded by the loop's table lock.
final class Watch {
  /// Tells the events of this watch from those of an earlier one of the same number.
  @exclusivity(unchecked) var serial: UInt32
  @exclusivity(unchecked) var sources: ContiguousArray<Membership<RunLoop.DescriptorSource>>
  /// Which source's turn it was last.
  @exclusivity(unchecked) private var turn = 0
  /// Whether it stands in the kernel's set, as it does unless all its sources are paused.
  @exclusivity(unchecked) var isArmed = false

  init(serial: UInt32, _ membership: Membership<RunLoop.DescriptorSource>) {
    self.serial = serial
    sources = [membership]
  }

  /// What the sources that are not paused wait for; nil: all are.
  var interests: RunLoop.DescriptorSource.Events? {
    var events: RunLoop.DescriptorSource.Events?
    for membership in sources {
      let interest = membership.item.interest.load(ordering: .relaxed)
      if !interest.isPaused { events = (events ?? []).union(interest.events) }
    }
    return events
  }

  /// Whether some source is to be told of what was found.
  func hasTaker(_ found: PollSet.Ready) -> Bool {
    for index in sources.indices where !events(found, for: index).isEmpty { return true }
    return false
  }

  /// The source whose turn it is among those that are to be told of what was found, and what it is to be told.
  func takeTurn(
    _ found: PollSet.Ready
  ) -> (source: RunLoop.DescriptorSource, events: RunLoop.DescriptorSource.Events)? {
    for _ in sources.indices {
      turn = turn + 1 < sources.count ? turn + 1 : 0
      let events = events(found, for: turn)
      if !events.isEmpty { return (sources[turn].item, events) }
    }
    return nil
  }

  /// What a source is to be told of what was found.
  @inline(__always)
  private func events(_ found: PollSet.Ready, for index: Int) -> RunLoop.DescriptorSource.Events {
    let interest = sources[index].item.interest.load(ordering: .relaxed)
    guard !interest.isPaused else { return [] }
    let events = found.events.intersection(interest.events.union([.hangUp, .error]))
    return found.isHalfClosed ? events.union(interest.events.intersection(.hangUp)) : events
  }
}

/// The watches of a set by their descriptors: the system gives out the lowest numbers first, so that an array is not large.
struct WatchTable {
  private var watches: ContiguousArray<Watch?> = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  subscript(descriptor: Int32) -> Watch? {
    @inline(__always) get {
      let index = Int(descriptor)
      return index >= 0 && index < watches.count ? watches[index] : nil
    }
    set {
      // The kernel has taken the number, so that it is none of its errors.
      let index = Int(descriptor)
      if index >= watches.count {
        guard newValue != nil else { return }
        let room = max(index + 1, watches.count * 2)
        watches.append(contentsOf: repeatElement(nil, count: room - watches.count))
      }
      count += (newValue == nil ? 0 : 1) - (watches[index] == nil ? 0 : 1)
      watches[index] = newValue
      if count == 0 { watches = [] }
    }
  }

  /// Every watch, by its descriptor.
  ///
  /// O(n) in the largest descriptor.
  var all: [(Int32, Watch)] {
    watches.enumerated().compactMap { index, watch in watch.map { (Int32(index), $0) } }
  }
}
