// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

/// The modes of loops that a message port is in.
///
/// In each it has a descriptor source of its own, which only the loop holds: a port that is in a loop is kept alive by
/// it, and let go when the loop ends. Guarded by the port's lock.
struct MessagePortRegistrations {
  private struct Place {
    weak var loop: RunLoop?
    let mode: RunLoop.Mode
    weak var source: RunLoop.DescriptorSource?
  }

  private var all: [Place] = []
  private var timers: [Waiting: RegisteredTimer] = [:]

  /// What a port has a timer for.
  enum Waiting: CaseIterable {
    /// The next attempt to take a connection.
    case retry
    /// The time by which connections have to have said something.
    case silence
  }

  /// The source of a place, if the port is there.
  func source(in loop: RunLoop, _ mode: RunLoop.Mode) -> RunLoop.DescriptorSource? {
    for place in all where place.loop === loop && place.mode == mode {
      if let source = place.source, source.isValid { return source }
    }
    return nil
  }

  /// Takes a source in; places that are gone are forgotten.
  ///
  /// O(n).
  mutating func insert(_ source: RunLoop.DescriptorSource, in loop: RunLoop, _ mode: RunLoop.Mode) {
    all.removeAll { $0.source == nil || $0.loop == nil }
    all.append(Place(loop: loop, mode: mode, source: source))
    for purpose in Waiting.allCases { timers[purpose]?.enter(loop, mode) }
  }

  /// Takes the source of a place out.
  mutating func remove(from loop: RunLoop, _ mode: RunLoop.Mode) -> RunLoop.DescriptorSource? {
    for (index, place) in all.enumerated() where place.loop === loop && place.mode == mode {
      all.remove(at: index)
      let isLast = !all.contains { $0.loop === loop }
      for purpose in Waiting.allCases { timers[purpose]?.leave(loop, mode, isLast: isLast) }
      return place.source
    }
    return nil
  }

  /// Has a timer wherever the port is and will be, and returns the one before, to be ended outside the lock.
  mutating func replaceTimer(_ next: RegisteredTimer?, _ purpose: Waiting = .retry) -> RegisteredTimer? {
    let before = timers[purpose]
    timers[purpose] = next
    for place in all {
      // A place whose source has gone is one whose loop has ended.
      if let loop = place.loop, place.source != nil { timers[purpose]?.enter(loop, place.mode) }
    }
    return before
  }

  /// Whether there is a timer for a purpose.
  func hasTimer(_ purpose: Waiting) -> Bool { timers[purpose] != nil }

  /// Takes all sources out.
  mutating func removeAll() -> [RunLoop.DescriptorSource] {
    var sources: [RunLoop.DescriptorSource] = []
    for place in all { if let source = place.source { sources.append(source) } }
    all = []
    return sources
  }
}

/// An end of a conversation, as a loop sees it.
protocol MessagePortItem: CarriedItem {
  /// What the loop waits for.
  var watched: MessagePort.Descriptor { get }
  /// Does what is to be done when it is ready; the loop's thread.
  func serve()
  /// Changes the places under the lock; nil if the port is invalid.
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
      // Whoever invalidated the port meanwhile invalidated the source.
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

/// Who is to be notified, once, that a port is invalid.
///
/// An observer is a structure with a closure, which is kept without a thunk in it.
struct InvalidationList<Observer: Sendable> {
  private var observers: [Observer] = []

  mutating func append(_ observer: Observer) { observers.append(observer) }

  mutating func takeAll() -> [Observer] {
    defer { observers = [] }
    return observers
  }
}
