// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

/// The modes of loops that a message port is in.
///
/// In each mode, the port has a separate descriptor source that only the loop retains. A port is thus retained by the
/// loops that it is in, and released when they end. Guarded by the port's lock.
struct MessagePortRegistrations {
  private struct Place {
    weak var loop: RunLoop?
    let mode: RunLoop.Mode
    weak var source: RunLoop.DescriptorSource?
  }

  private var all: [Place] = []
  private var timers: [Waiting: RegisteredTimer] = [:]

  enum Waiting: CaseIterable {
    /// The next attempt to accept a connection.
    case retry
    /// The deadline for a connection's first message.
    case silence
  }

  /// Returns the port's source in a mode, if the port is in it.
  func source(in loop: RunLoop, _ mode: RunLoop.Mode) -> RunLoop.DescriptorSource? {
    for place in all where place.loop === loop && place.mode == mode {
      if let source = place.source, source.isValid { return source }
    }
    return nil
  }

  /// Adds a source, and removes those of loops that have ended.
  ///
  /// - Complexity: O(*n*).
  mutating func insert(_ source: RunLoop.DescriptorSource, in loop: RunLoop, _ mode: RunLoop.Mode) {
    all.removeAll { $0.source == nil || $0.loop == nil }
    all.append(Place(loop: loop, mode: mode, source: source))
    for purpose in Waiting.allCases { timers[purpose]?.enter(loop, mode) }
  }

  mutating func remove(from loop: RunLoop, _ mode: RunLoop.Mode) -> RunLoop.DescriptorSource? {
    for (index, place) in all.enumerated() where place.loop === loop && place.mode == mode {
      all.remove(at: index)
      let isLast = !all.contains { $0.loop === loop }
      for purpose in Waiting.allCases { timers[purpose]?.leave(loop, mode, isLast: isLast) }
      return place.source
    }
    return nil
  }

  /// Sets a timer for all current and future modes of the port, and returns the previous one, to be invalidated without
  /// the lock.
  mutating func replaceTimer(_ next: RegisteredTimer?, _ purpose: Waiting = .retry) -> RegisteredTimer? {
    let before = timers[purpose]
    timers[purpose] = next
    for place in all {
      // If its source was released, the loop has ended.
      if let loop = place.loop, place.source != nil { timers[purpose]?.enter(loop, place.mode) }
    }
    return before
  }

  func hasTimer(_ purpose: Waiting) -> Bool { timers[purpose] != nil }

  mutating func removeAll() -> [RunLoop.DescriptorSource] {
    var sources: [RunLoop.DescriptorSource] = []
    for place in all { if let source = place.source { sources.append(source) } }
    all = []
    return sources
  }
}

/// A message port, as served by a loop.
protocol MessagePortItem: CarriedItem {
  /// The descriptor that the loop watches.
  var watched: MessagePort.Descriptor { get }
  /// Handles the descriptor's readiness, on the loop's thread.
  func serve()
  /// Calls `body` with the registrations and the lock held. Returns `nil` if the port is invalid.
  func withRegistrations<Result: Sendable>(_ body: (inout MessagePortRegistrations) -> Result) -> Result?
}

extension MessagePortItem {
  package var keepAliveKind: KeepAliveKind { .port }

  func carryOut(_ request: RunLoop.ItemRequest) throws(MessagePortError) -> Bool {
    switch request.act {
    case .add: try join(request.loop, request.mode)
    case .remove: part(request.loop, request.mode)
    case .contains: return isIn(request.loop, request.mode)
    }
    return true
  }

  private func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(MessagePortError) {
    guard
      let isThere = withRegistrations({ $0.source(in: loop, mode).map { loop.contains($0, forMode: mode) } ?? false })
    else {
      throw .invalid
    }
    guard !isThere else { return }
    let source = RunLoop.DescriptorSource(descriptor: watched.number, events: .readable, carrying: self) { _, _ in
      self.serve()
    }
    let isTaken = withRegistrations { $0.insert(source, in: loop, mode) } != nil
    do throws(RunLoopError) {
      if isTaken { try loop.add(source, forMode: mode) }
    } catch {
      source.invalidate()
      // If another thread has invalidated the port in the meantime, it has also invalidated the source.
      throw withRegistrations({ _ in true }) == nil ? .invalid : .runLoop(error)
    }
    guard isTaken else { throw .invalid }
  }

  private func part(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    withRegistrations { $0.remove(from: loop, mode) }??.invalidate()
  }

  private func isIn(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    guard let source = withRegistrations({ $0.source(in: loop, mode) }) ?? nil else { return false }
    return loop.contains(source, forMode: mode)
  }
}

/// The observers to notify once that a port is invalid; each is a structure with a closure, to avoid a reabstraction
/// thunk.
struct InvalidationList<Observer: Sendable> {
  private var observers: [Observer] = []

  mutating func append(_ observer: Observer) { observers.append(observer) }

  mutating func takeAll() -> [Observer] {
    defer { observers = [] }
    return observers
  }
}
