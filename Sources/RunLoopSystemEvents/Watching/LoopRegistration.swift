// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A source that is served when a descriptor is readable.
protocol RegisteredSource: CarriedItem {
  var loopRegistration: LoopRegistration { get }

  /// Reads what is there and calls out.
  ///
  /// A loop's thread, under no lock; several at once if the source is in several loops.
  func serve()

  /// The source is in no mode of any loop any more.
  func hasLeft()
}

/// What connects a source with the loops that serve it: its descriptors, which it may share with others, and a
/// descriptor source for each as long as it is in a mode.
///
/// The loops hold the descriptor sources, which hold the source; the source does not hold the descriptor sources. So a
/// source is kept alive by the loops that it is in and by whoever has it, and otherwise goes.
///
/// In a child of a fork, the sources of its parent are invalid: the parent's signals, children and file changes are
/// read from descriptors that both have open, and what the child read the parent would miss.
final class LoopRegistration: @unchecked Sendable {
  // Sendable: the lock guards everything.

  private let lock = ProcessLock()
  private var descriptors: [OwnedDescriptor]
  private weak var first: RunLoop.DescriptorSource?
  private weak var second: RunLoop.DescriptorSource?

  init(_ descriptor: OwnedDescriptor, _ other: OwnedDescriptor? = nil) {
    descriptors = [descriptor] + (other.map { [$0] } ?? [])
  }

  /// The first descriptor, unless the source is invalid, as a parent's is.
  ///
  /// Whoever has it keeps it open.
  var opened: OwnedDescriptor? { lock.ifOwned(else: nil) { descriptors.first } }

  var isOpen: Bool { opened != nil }

  /// Leaves all modes and gives the descriptors up; false if that was done before.
  func close() -> Bool {
    // What the parent waits for is not for its child to end; the child's copies of the descriptors go with the source.
    guard !lock.isParents else { return false }
    let (closed, sources) = lock.withLock {
      let before = (descriptors, [first, second])
      descriptors = []
      return before
    }
    // The epoll sets first: what is closed after this is watched by nobody.
    for source in sources { source?.invalidate() }
    return withExtendedLifetime(closed) { !closed.isEmpty }
  }

  /// The descriptor sources that are in modes now.
  fileprivate var present: [RunLoop.DescriptorSource] {
    lock.ifOwned(else: []) { [first, second].compactMap { $0 } }
  }

  /// The descriptor sources to be put into a mode; none once closed.
  fileprivate func sources(for owner: some RegisteredSource) -> [RunLoop.DescriptorSource] {
    lock.ifOwned(else: []) {
      let present = [first, second].compactMap { $0 }
      guard present.count < descriptors.count else { return present }
      let stay = Stay(owner)
      // One of them may have left its last mode just now.
      let sources = zip(descriptors, [first, second]).map { descriptor, present in
        present
          ?? RunLoop.DescriptorSource(descriptor: descriptor.number, events: .readable, carrying: stay) { _, _ in
            stay.owner.serve()
          }
      }
      first = sources.first
      second = sources.dropFirst().first
      return sources
    }
  }
}

/// Lives as long as a source is in a mode.
private final class Stay: Sendable {
  let owner: any RegisteredSource

  init(_ owner: any RegisteredSource) {
    self.owner = owner
  }

  deinit { owner.hasLeft() }
}

extension Stay: CarriedItem {
  var keepAliveKind: KeepAliveKind { owner.keepAliveKind }
  var keepAliveCode: UInt64 { owner.keepAliveCode }
  var keepAliveDetail: String { owner.keepAliveDetail }
  var keepAliveIdentity: AnyObject { owner }
}

extension RegisteredSource {
  func carryOut(_ request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .add: try join(loop, mode)
    case .remove: for next in loopRegistration.present { loop.remove(next, forMode: mode) }
    case .contains: return loopRegistration.present.first.map { loop.contains($0, forMode: mode) } ?? false
    }
    return true
  }

  private func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(RunLoopError) {
    let sources = loopRegistration.sources(for: self)
    guard let first = sources.first else { throw .invalidSource }
    let wasThere = loop.contains(first, forMode: mode)
    for next in sources {
      do throws(RunLoopError) {
        try loop.add(next, forMode: mode)
      } catch {
        if !wasThere { for added in sources { loop.remove(added, forMode: mode) } }
        throw error
      }
    }
  }
}

/// The beginning of a description, with the item's type and address.
func itemDescription(_ item: some RegisteredSource, _ rest: String) -> String {
  let address = UInt(bitPattern: Unmanaged.passUnretained(item).toOpaque())
  let isValid = item.loopRegistration.isOpen ? "Yes" : "No"
  return "<\(type(of: item)) 0x\(String(address, radix: 16))>{valid = \(isValid), version = 1, \(rest)}"
}
