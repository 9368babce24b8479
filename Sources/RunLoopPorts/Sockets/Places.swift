import RunLoopCore

/// Where an item of ours is, and the descriptor source by which it is there.
///
/// The loops hold the source, the source its handler, and the handler the item; the item holds the source weakly. So a loop
/// holds what is in it, and what no loop and nobody else holds ends.
///
/// Guarded by the item's lock.
struct Places {
  /// Whether the item was in loops, whose threads have all ended: nobody serves it until it is added to another.
  var areOver: Bool { !all.isEmpty && all.allSatisfy { $0.loop.takesNoItems } }

  private(set) weak var source: RunLoop.DescriptorSource?
  private(set) var all: [(loop: RunLoop, mode: RunLoop.Mode)] = []

  /// The source, if it is in a loop, or a new one.
  mutating func sourceToAdd(_ make: () -> RunLoop.DescriptorSource) -> RunLoop.DescriptorSource {
    if let source { return source }
    // The loops that it was in have ended.
    all = []
    let made = make()
    source = made
    return made
  }

  mutating func insert(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    if !contains(loop, mode) { all.append((loop, mode)) }
  }

  mutating func remove(_ loop: RunLoop, _ mode: RunLoop.Mode) { all.removeAll { $0.loop === loop && $0.mode == mode } }

  func contains(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    all.contains { $0.loop === loop && $0.mode == mode }
  }

  /// Gives up the source, for it to be invalidated outside the lock.
  mutating func removeAll() -> RunLoop.DescriptorSource? {
    defer {
      all = []
      source = nil
    }
    return source
  }

  /// Runs a block on the loop in which the item was first, in all of its modes there; false if it is in none.
  func perform(_ block: @escaping @Sendable () -> Void) -> Bool {
    guard let loop = all.first?.loop else { return false }
    return loop.perform(inModes: all.filter { $0.loop === loop }.map(\.mode), block: block)
  }

  /// Adds a timer in the modes of the loop that it is in, or else of the one in which the item was first.
  func add(_ timer: Timer) {
    let present = all.first { $0.loop.contains(timer, forMode: $0.mode) }
    guard let loop = (present ?? all.first)?.loop else { return }
    for place in all where place.loop === loop { loop.add(timer, forMode: place.mode) }
  }
}

/// An item for which tasks wait.
protocol AwaitedItem: AnyObject, Sendable {
  /// Whether a task waits.
  ///
  /// Any thread, without the item's lock.
  var isAwaited: Bool { get }

  /// Ends the waits of all tasks if the loops of the item have ended.
  func endWaitsIfLoopsHaveEnded()
}

/// Lives as long as an item is in a loop, and keeps the item.
///
/// Whoever waits for what nobody will serve is told so. As the last loop may let go of the item wherever somebody else has
/// just looked at it, under the item's lock, it is a task of its own that takes the lock.
final class Presence<Item: AwaitedItem>: Sendable {
  let item: Item

  init(_ item: Item) { self.item = item }

  deinit {
    // A task that begins to wait later than this finds the loops over.
    if item.isAwaited { Task.detached { [item] in item.endWaitsIfLoopsHaveEnded() } }
  }
}
