// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A source that is served when one of its descriptors is readable.
protocol RegisteredSource: CarriedItem {
  var loopRegistration: LoopRegistration { get }

  /// Reads the pending events and makes the call-outs. Called on a loop's thread without a lock. If the source is in
  /// several loops, this may run on several threads at once.
  func serve()

  /// Called when the source has left its last mode.
  func hasLeft()
}

/// Connects a source with the loops that serve it: it has the source's descriptors, which may be shared, and a
/// descriptor source for each while the source is in a mode.
///
/// The loops retain the descriptor sources, and these retain the source, but the source does not retain the descriptor
/// sources. A source is thus kept alive by the loops that it is in and by its other references.
///
/// In a forked child, the sources of the parent are invalid. The descriptors are shared with the parent, which would
/// miss the signals, children and file changes that the child reads.
final class LoopRegistration: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  private let lock = ProcessLock()
  private var descriptors: [OwnedDescriptor]
  private weak var first: RunLoop.DescriptorSource?
  private weak var second: RunLoop.DescriptorSource?

  init(_ descriptor: OwnedDescriptor, _ other: OwnedDescriptor? = nil) {
    descriptors = [descriptor] + (other.map { [$0] } ?? [])
  }

  /// The first descriptor, which the reference keeps open, or `nil` if the source is invalid, as the parent's are in a
  /// forked child.
  var opened: OwnedDescriptor? { lock.ifOwned(else: nil) { descriptors.first } }

  var isOpen: Bool { opened != nil }

  /// Leaves all modes and releases the descriptors, or returns false if that was already done.
  func close() -> Bool {
    // A child must not end the parent's source. Its copies of the descriptors are closed when the source is released.
    guard !lock.isParents else { return false }
    let (closed, sources) = lock.withLock {
      let before = (descriptors, [first, second])
      descriptors = []
      return before
    }
    // Leave the epoll sets before the descriptors are closed.
    for source in sources { source?.invalidate() }
    return withExtendedLifetime(closed) { !closed.isEmpty }
  }

  /// Whether the calling thread's loop has the source in the mode that it runs in.
  var isHere: Bool {
    guard let source = present.first, let mode = RunLoop.current.currentMode else { return false }
    return RunLoop.current.contains(source, forMode: mode)
  }

  /// Stops watching for a moment, because a descriptor is ready although there is nothing to take.
  func rest() {
    let sources = present
    for source in sources { source.pause() }
    _ = ServiceThread.loop.schedule(in: .milliseconds(10)) { _ in for source in sources { try? source.resume() } }
  }

  /// The descriptor sources that are in a mode.
  fileprivate var present: [RunLoop.DescriptorSource] {
    lock.ifOwned(else: []) { [first, second].compactMap { $0 } }
  }

  /// Returns the descriptor sources to add to a mode, or none if this is closed.
  fileprivate func sources(for owner: some RegisteredSource) -> [RunLoop.DescriptorSource] {
    lock.ifOwned(else: []) {
      let present = [first, second].compactMap { $0 }
      guard present.count < descriptors.count else { return present }
      let stay = Stay(owner)
      // One of them may have just left its last mode.
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

/// Retains a source, and lives as long as the source is in a mode.
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

/// Returns an item's description, starting with its type and address.
func itemDescription(_ item: some RegisteredSource, _ rest: String) -> String {
  let address = UInt(bitPattern: Unmanaged.passUnretained(item).toOpaque())
  let isValid = item.loopRegistration.isOpen ? "Yes" : "No"
  return "<\(type(of: item)) 0x\(String(address, radix: 16))>{valid = \(isValid), version = 1, \(rest)}"
}
