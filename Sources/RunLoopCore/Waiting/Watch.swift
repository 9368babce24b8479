// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The sources of one descriptor, in one mode; guarded by the loop's table lock.
final class Watch {
  /// Distinguishes the events of this watch from those of an earlier watch with the same number.
  @exclusivity(unchecked) var serial: UInt32
  @exclusivity(unchecked) var sources: ContiguousArray<Membership<RunLoop.DescriptorSource>> {
    didSet { only = sources.count == 1 ? Unmanaged.passUnretained(sources[0].item) : nil }
  }
  /// The only source, if there is one, as there usually is: it is looked at without retaining it.
  @exclusivity(unchecked) private var only: Unmanaged<RunLoop.DescriptorSource>?
  /// The source whose turn was last.
  @exclusivity(unchecked) private var turn = 0
  /// When one of its sources was last served, in the order of everything that the set has served.
  @exclusivity(unchecked) var lastService: UInt64 = 0
  /// How often it was served in waits that followed each other, and whether anything was read then.
  @exclusivity(unchecked) var streak = ReadyStreak()
  /// Whether it is in the kernel's set, as it is unless all its sources are paused.
  @exclusivity(unchecked) var isArmed = false

  init(serial: UInt32, _ membership: Membership<RunLoop.DescriptorSource>) {
    self.serial = serial
    sources = [membership]
    only = Unmanaged.passUnretained(membership.item)
  }

  /// The events that the sources that are not paused wait for; nil if all are paused.
  var interests: RunLoop.DescriptorSource.Events? {
    var events: RunLoop.DescriptorSource.Events?
    for membership in sources {
      let interest = membership.item.interest.load(ordering: .relaxed)
      if !interest.isPaused { events = (events ?? []).union(interest.events) }
    }
    return events
  }

  /// The source whose turn it is among those to be notified of what was found, and the events to notify it of.
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

  /// The events, among those that were found, that a source is to be notified of.
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

/// The watches of a set by their descriptors: the system uses the lowest numbers first, so an array does not become
/// large.
///
/// It holds the watches unmanaged, so that looking at one retains nothing.
struct WatchTable: ~Copyable {
  private var watches: ContiguousArray<Unmanaged<Watch>?> = []
  private(set) var count = 0

  deinit { for watch in watches { watch?.release() } }

  var isEmpty: Bool { count == 0 }

  /// The watch of a descriptor.
  subscript(descriptor: Int32) -> Watch? {
    get { withWatch(of: descriptor) { $0 } }
    set {
      // The kernel has accepted the number, so it is not an invalid one.
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

  /// Calls a closure with the watch of a descriptor, if there is one.
  @inline(__always)
  borrowing func withWatch<Result>(of descriptor: Int32, _ body: (Watch) -> Result) -> Result? {
    let index = Int(descriptor)
    guard index >= 0, index < watches.count, let watch = watches[index] else { return nil }
    return watch._withUnsafeGuaranteedRef(body)
  }

  /// Every watch, by its descriptor.
  ///
  /// - Complexity: O(n) in the largest descriptor.
  var all: [(Int32, Watch)] {
    watches.enumerated().compactMap { index, watch in watch.map { (Int32(index), $0.takeUnretainedValue()) } }
  }
}
