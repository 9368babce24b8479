import RunLoopCore

/// A source that is served when a descriptor of its own is readable.
protocol SeatedSource: AnyObject, Sendable {
  var seat: Seat { get }

  /// Reads what is there and calls out.
  ///
  /// A loop's thread, under no lock; several at once if the source is in several loops.
  func serve()

  /// The source is in no mode of any loop any more.
  func hasLeft()
}

/// What connects a source with the loops that serve it: its descriptor, and a descriptor source for as long as it is in a mode.
///
/// The loops hold the descriptor source, which holds the source; the source does not hold the descriptor source. So a source is
/// kept alive by the loops that it is in and by whoever has it, and otherwise goes.
///
/// In a child of a fork, the sources of its parent are invalid: the parent's signals, children and file changes are read from
/// descriptors that both have open, and what the child read the parent would miss.
final class Seat: @unchecked Sendable {
  // Sendable: the lock guards everything.

  private let lock = ProcessLock()
  private var descriptor: OwnedDescriptor?
  private weak var source: RunLoop.DescriptorSource?

  init(_ descriptor: OwnedDescriptor) {
    self.descriptor = descriptor
  }

  /// The descriptor, unless the source is invalid, as a parent's is.
  ///
  /// Whoever has it keeps it open.
  var opened: OwnedDescriptor? { lock.isParents ? nil : lock.withLock { descriptor } }

  var isOpen: Bool { opened != nil }

  /// Leaves all modes and gives the descriptor up; false if that was done before.
  func close() -> Bool {
    // What the parent waits for is not for its child to end; the child's copy of the descriptor goes with the source.
    guard !lock.isParents else { return false }
    let (closed, source) = lock.withLock {
      let before = (descriptor, self.source)
      descriptor = nil
      return before
    }
    // The epoll sets first: what is closed after this is watched by nobody.
    source?.invalidate()
    return withExtendedLifetime(closed) { closed != nil }
  }

  /// The descriptor source that is in modes now.
  fileprivate var present: RunLoop.DescriptorSource? { lock.isParents ? nil : lock.withLock { source } }

  /// The descriptor source to be put into a mode; nil once closed.
  fileprivate func source(for owner: some SeatedSource) -> RunLoop.DescriptorSource? {
    guard !lock.isParents else { return nil }
    return lock.withLock {
      guard let descriptor else { return nil }
      if let source { return source }
      let stay = Stay(owner)
      let made = RunLoop.DescriptorSource(descriptor: descriptor.number, events: .readable) { _, _ in stay.owner.serve()
      }
      source = made
      return made
    }
  }
}

/// Lives as long as a source is in a mode.
private final class Stay: Sendable {
  let owner: any SeatedSource

  init(_ owner: any SeatedSource) {
    self.owner = owner
  }

  deinit { owner.hasLeft() }
}

extension RunLoop {
  func seat(_ source: some SeatedSource, _ mode: Mode) throws(RunLoopError) {
    guard let descriptorSource = source.seat.source(for: source) else { throw .invalidSource }
    try add(descriptorSource, forMode: mode)
  }

  func unseat(_ source: some SeatedSource, _ mode: Mode) {
    if let descriptorSource = source.seat.present { remove(descriptorSource, forMode: mode) }
  }

  func seats(_ source: some SeatedSource, _ mode: Mode) -> Bool {
    source.seat.present.map { contains($0, forMode: mode) } ?? false
  }
}

/// The beginning of a description, with the item's type and address.
func itemDescription(_ item: some SeatedSource, _ rest: String) -> String {
  let address = UInt(bitPattern: Unmanaged.passUnretained(item).toOpaque())
  return
    "<\(type(of: item)) 0x\(String(address, radix: 16))>{valid = \(item.seat.isOpen ? "Yes" : "No"), version = 1, \(rest)}"
}
