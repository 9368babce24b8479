// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The sources of one descriptor in one mode, guarded by the loop's table lock.
final class Watch {
  /// Distinguishes the events of this watch from those of an earlier watch of the same descriptor number.
  @exclusivity(unchecked) var serial: UInt32
  @exclusivity(unchecked) var sources: ContiguousArray<Membership<RunLoop.DescriptorSource>> {
    didSet { only = sources.count == 1 ? Unmanaged.passUnretained(sources[0].item) : nil }
  }
  /// The source if there is exactly one, as usual; it is accessed without retaining it.
  @exclusivity(unchecked) private var only: Unmanaged<RunLoop.DescriptorSource>?
  /// The index of the source that had the last turn.
  @exclusivity(unchecked) private var turn = 0
  /// The sequence number, among all services of the set, of the last service of this descriptor.
  @exclusivity(unchecked) var lastService: UInt64 = 0
  /// The number of consecutive services, and whether anything was read in them.
  @exclusivity(unchecked) var streak = ReadyStreak()
  /// Whether the descriptor is in the kernel's set, which it leaves while all its sources are paused.
  @exclusivity(unchecked) var isArmed = false

  init(serial: UInt32, _ membership: Membership<RunLoop.DescriptorSource>) {
    self.serial = serial
    sources = [membership]
    only = Unmanaged.passUnretained(membership.item)
  }

  /// The events that the sources wait for, except for paused ones; nil if all are paused.
  var interests: RunLoop.DescriptorSource.Events? {
    var events: RunLoop.DescriptorSource.Events?
    for membership in sources {
      let interest = membership.item.interest.load(ordering: .relaxed)
      if !interest.isPaused { events = (events ?? []).union(interest.events) }
    }
    return events
  }

  /// Returns the next source, in turn, that waits for one of the events found, and its events; nil if there is none.
  func takeTurn(_ found: PollSet.Ready) -> PollSet.Turn? {
    guard let only else { return takeTurnOfSeveral(found) }
    let events = only._withUnsafeGuaranteedRef { source in self.events(found, for: source) }
    return events.isEmpty ? nil : (only.takeUnretainedValue(), events)
  }

  @inline(never)
  private func takeTurnOfSeveral(_ found: PollSet.Ready) -> PollSet.Turn? {
    for _ in sources.indices {
      turn = turn + 1 < sources.count ? turn + 1 : 0
      let source = sources[turn].item
      let events = events(found, for: source)
      if !events.isEmpty { return (source, events) }
    }
    return nil
  }

  /// Returns the events found that a source should be notified of.
  @inline(__always)
  private func events(
    _ found: PollSet.Ready, for source: RunLoop.DescriptorSource
  ) -> RunLoop.DescriptorSource.Events {
    let interest = source.interest.load(ordering: .relaxed)
    guard !interest.isPaused else { return [] }
    let events = found.events.intersection(interest.events.union([.hangUp, .error]))
    return found.isHalfClosed ? events.union(interest.events.intersection(.hangUp)) : events
  }
}

/// The watches of a set, indexed by descriptor.
///
/// An array suffices, because the system assigns the lowest free descriptor. It holds the watches unmanaged, so that
/// accessing one does not retain it.
struct WatchTable: ~Copyable {
  private var watches: ContiguousArray<Unmanaged<Watch>?> = []
  private(set) var count = 0

  deinit { for watch in watches { watch?.release() } }

  var isEmpty: Bool { count == 0 }

  /// The watch of a descriptor, or nil if it is not watched.
  subscript(descriptor: Int32) -> Watch? {
    get { withWatch(of: descriptor) { $0 } }
    set {
      // The kernel has accepted the descriptor, so it is not negative.
      let index = Int(descriptor)
      if index >= watches.count {
        guard newValue != nil else { return }
        watches.append(contentsOf: repeatElement(nil, count: max(index + 1, watches.count * 2) - watches.count))
      }
      let old = watches[index]
      watches[index] = newValue.map(Unmanaged.passRetained)
      count += (newValue == nil ? 0 : 1) - (old == nil ? 0 : 1)
      old?.release()
      if count == 0 { watches = [] }
    }
  }

  /// Calls a closure with the watch of a descriptor, and returns its result; nil if the descriptor is not watched.
  @inline(__always)
  borrowing func withWatch<Result>(of descriptor: Int32, _ body: (Watch) -> Result) -> Result? {
    let index = Int(descriptor)
    guard index >= 0, index < watches.count, let watch = watches[index] else { return nil }
    return watch._withUnsafeGuaranteedRef(body)
  }

  /// All watches, each with its descriptor.
  ///
  /// - Complexity: O(n) in the largest descriptor.
  var all: [(Int32, Watch)] {
    watches.enumerated().compactMap { index, watch in watch.map { (Int32(index), $0.takeUnretainedValue()) } }
  }
}
