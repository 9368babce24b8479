// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

/// An item of ours that loops serve by one descriptor source: what sockets of all kinds have in common.
protocol RegisteredItem: AwaitedItem, CarriedItem {
  /// Guards the rest; what belongs to a parent process is not touched.
  var lock: ProcessLock { get }
  var registrations: Registrations { get set }

  /// The descriptor, and what is waited for at it now, nil for nothing; nil if the item is closed.
  ///
  /// Under the lock.
  var watched: (descriptor: Int32, events: RunLoop.DescriptorSource.Events?)? { get }

  /// Responds to what the descriptor is ready for, on a loop's thread, without the lock.
  func ready(_ events: RunLoop.DescriptorSource.Events)

  /// The item has come into one more mode.
  ///
  /// Under the lock.
  func hasEntered()
}

extension RegisteredItem {
  func carryOut(_ request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    switch request.act {
    case .add: try join(request.loop, request.mode)
    case .remove: part(request.loop, request.mode)
    case .contains: return isIn(request.loop, request.mode)
    }
    return true
  }

  func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(RunLoopError) {
    guard !lock.isParents else { throw .invalidSource }
    lock.lock()
    guard let source = registrations.source ?? makeSource() else {
      lock.unlock()
      throw .invalidSource
    }
    do throws(RunLoopError) {
      try registrations.enter(loop, mode, source)
    } catch {
      lock.unlock()
      throw withExtendedLifetime(source) { error }
    }
    hasEntered()
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  private func makeSource() -> RunLoop.DescriptorSource? {
    guard let watched else { return nil }
    let presence = Presence(self)
    let source = RunLoop.DescriptorSource(
      descriptor: watched.descriptor, events: watched.events ?? [], carrying: presence
    ) { _, events in presence.item.ready(events) }
    if watched.events == nil { source.pause() }
    return source
  }

  func part(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    guard !lock.isParents else { return }
    lock.lock()
    let source = registrations.leave(loop, mode)
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  func isIn(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    guard !lock.isParents, let source = lock.withLock({ registrations.source }) else { return false }
    return loop.contains(source, forMode: mode)
  }
}
