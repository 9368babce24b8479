// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// An item that keeps the current mode of a loop alive.
package struct KeptItem: Sendable {
  package let kind: KeepAliveKind
  /// The item's address, or zero if it is not an object.
  package let item: UInt64
  /// The modes of the loop that contain the item.
  package let modes: [RunLoop.Mode]
  /// The address of the user's function, or zero.
  package let code: UInt64
  /// The return addresses of the code that added the item, innermost first; empty if no instruments were watching.
  package let added: [UInt64]
  package let detail: String
}

extension RunLoop {
  /// Everything that keeps the mode of the innermost run alive; empty if no run is active.
  ///
  /// Can be used from any thread. The loop can only be delayed while the mode's items are copied with the table's lock
  /// held.
  ///
  /// - Complexity: O(n m) for n items in the mode and m modes in the loop
  package var keptItems: [KeptItem] {
    guard let mode = ModeState.at(current.load(ordering: .acquiring)) else { return [] }
    let content = table.withLock { ModeContent(mode, $0, additions, handOffPlace) }
    var found: [KeptItem] = []
    for entry in content.entries {
      // Several items of this layer may represent the same item of a higher layer.
      guard let item = entry.described(at: tickNow), !found.contains(where: { $0.item == item.item }) else { continue }
      found.append(item)
    }
    let isResident = found.contains { $0.kind == .resident }
    if content.hasHandOffSource, !isResident { found += handOffItems(mode, content) }
    found += blockItems(mode, content)
    if mode.servesMainQueue.load(ordering: .relaxed) {
      found.append(.init(kind: .mainQueue, modes: [mode.name], detail: "the main dispatch queue is served"))
    }
    // The host's items cannot be queried from another thread, but if nothing else keeps the run alive, one of them
    // does.
    if found.isEmpty, content.hasHost {
      found.append(.init(kind: .host, modes: [mode.name], detail: "the loop of another library in which it waits"))
    }
    return found
  }

  /// Where the items of all modes were added while instruments were watching, by address (thread-safe).
  package var addedPlaces: [(item: UInt64, added: [UInt64])] {
    table.withLock { _ in additions }.map { key, frames in
      (UInt64(UInt(bitPattern: key)), AddedPlace(frames: frames).addresses)
    }
  }

  /// The hand-off source, or the work queued for it.
  private func handOffItems(_ mode: ModeState, _ content: ModeContent) -> [KeptItem] {
    let added = content.handOffPlace?.addresses ?? []
    let waiting = waitingWork(mode).filter(\.isHandOff)
    if waiting.isEmpty {
      return [
        .init(kind: .perform, modes: content.modesOfHandOffs, added: added, detail: "takes work that is handed over")
      ]
    }
    return waiting.map {
      .init(
        kind: .perform, modes: [mode.name], code: $0.code, added: $0.site == 0 ? added : [$0.site],
        detail: "handed over, waits to be performed")
    }
  }

  /// The blocks and jobs queued for the mode, as far as they are visible to other threads.
  private func blockItems(_ mode: ModeState, _ content: ModeContent) -> [KeptItem] {
    let waiting = waitingWork(mode)
    var found: [KeptItem] = waiting.filter { !$0.isHandOff }.map {
      .init(
        kind: .block, modes: [mode.name], code: $0.code, added: $0.site == 0 ? [] : [$0.site],
        detail: $0.isJob ? "a task's job, waits to be run" : "waits to be run")
    }
    // Blocks that the loop has taken from the inbox but not called yet. If there is only one mode, they belong to it.
    let taken = faceReading.waitingBlocks - waiting.count
    if content.modeCount == 1, taken > 0, !isWaiting {
      found.append(.init(kind: .block, modes: [mode.name], detail: "\(taken) more that the loop has taken"))
    }
    return found
  }

  /// The work queued in the inbox for a mode.
  private func waitingWork(_ mode: ModeState) -> [WaitingWork] {
    inbox.waiting(for: mode, isDefault: mode === table.defaultMode)
  }
}

extension KeptItem {
  fileprivate init(
    kind: KeepAliveKind, modes: [RunLoop.Mode], code: UInt64 = 0, added: [UInt64] = [], detail: String
  ) {
    self.init(kind: kind, item: 0, modes: modes, code: code, added: added, detail: detail)
  }
}

/// A mode's contents, copied with the table's lock held.
private struct ModeContent {
  struct Entry {
    let item: any ModeItem
    let modes: [RunLoop.Mode]
    let place: AddedPlace?
  }

  let entries: [Entry]
  let hasHandOffSource: Bool
  let handOffPlace: AddedPlace?
  let modesOfHandOffs: [RunLoop.Mode]
  let hasHost: Bool
  let modeCount: Int

  init(
    _ mode: ModeState, _ table: ModeTable, _ places: [ObjectIdentifier: crl_frames], _ handOffPlace: AddedPlace?
  ) {
    let all = table.modes.values.sorted { $0.name.rawValue < $1.name.rawValue }
    hasHandOffSource = mode.hasHandOffSource
    modesOfHandOffs = all.filter(\.hasHandOffSource).map(\.name)
    self.handOffPlace = handOffPlace
    hasHost = table.host != nil
    modeCount = all.count
    func entry(_ item: some ModeItem, _ isIn: (ModeState) -> Bool) -> Entry {
      Entry(
        item: item, modes: all.filter(isIn).map(\.name),
        place: places[ObjectIdentifier(item)].map { AddedPlace(frames: $0) })
    }
    let sources = mode.sources.values.map(\.item).sorted { $0.order < $1.order }
    let descriptors = mode.descriptors.values.map(\.item).sorted { $0.descriptor < $1.descriptor }
    entries =
      sources.map { item in entry(item) { $0.sources[ObjectIdentifier(item)] != nil } }
      + mode.ports.values.map { port in entry(port.item) { $0.ports[ObjectIdentifier(port.item)] != nil } }
      + descriptors.map { item in entry(item) { $0.descriptors[ObjectIdentifier(item)] != nil } }
      + mode.timers.all.map { timer in entry(timer) { timer.slots[$0] != nil } }
  }
}

extension ModeContent.Entry {
  /// Describes the item, or returns `nil` if it has been invalidated meanwhile.
  func described(at now: Tick) -> KeptItem? {
    // Keeps the closures alive while their code is read.
    guard item.hold() else { return nil }
    defer { item.letGo() }
    switch item {
    case let timer as Timer: return kept(.timer, timer.code, timer.keepAliveDetail(at: now))
    case let source as RunLoop.Source:
      return kept(.source0, source.code, "order \(source.order), \(source.isSignalled ? "" : "not ")signalled")
    case let source as RunLoop.DescriptorSource:
      if let carried = source.carriedItem { return kept(carried) }
      return kept(.descriptor, source.code, source.keepAliveDetail)
    case let port as any Port & CarriedItem: return kept(port)
    case let port as Port: return kept(.port, port.code, port.keepAliveDetail)
    default: return nil
    }
  }

  private func kept(_ carried: any CarriedItem) -> KeptItem {
    kept(
      carried.keepAliveKind, carried.keepAliveCode, carried.keepAliveDetail, of: carried.keepAliveIdentity,
      from: carried.keepAlivePlace)
  }

  private func kept(
    _ kind: KeepAliveKind, _ code: UInt64, _ detail: String, of known: AnyObject? = nil, from origin: AddedPlace? = nil
  ) -> KeptItem {
    KeptItem(
      kind: kind, item: itemAddress(known ?? item), modes: modes, code: code, added: (origin ?? place)?.addresses ?? [],
      detail: detail)
  }
}

extension Timer {
  /// Ten years, in nanoseconds.
  private static let decade: Int64 = 10 * 365 * 86_400 * 1_000_000_000

  /// A human-readable description of when the timer fires.
  fileprivate func keepAliveDetail(at now: Tick) -> String {
    let (deadline, isFiring): (Tick, Bool) = guarded { _ in (setTick, self.isFiring) }
    // An interval of years only keeps a timer valid whose owner sets each fire date.
    let isMoved = interval >= Timer.decade
    let kind = interval == 0 ? "once" : isMoved ? "at dates that are set" : "every \(Span.text(interval))"
    if isFiring { return "\(kind), fires now" }
    if deadline == .never { return "\(kind), has no date" }
    let next = Span.text(deadline - now)
    return interval == 0 ? "once, in \(next)" : "\(kind), next in \(next)"
  }
}

extension RunLoop.DescriptorSource {
  /// A human-readable description of the events that the source waits for.
  fileprivate var keepAliveDetail: String {
    "descriptor \(descriptor), \(isPaused ? "paused" : "waits to be \(events)")"
  }
}

extension Port {
  /// A human-readable description of the port's queued messages and, if it is a subclass, its type.
  fileprivate var keepAliveDetail: String {
    let count = waitingMessageCount
    let messages = count == 1 ? "1 message waiting" : "\(count) messages waiting"
    return type(of: self) == Port.self ? messages : "\(type(of: self)), \(messages)"
  }
}

/// Human-readable time spans.
enum Span {
  /// Formats the span in the largest unit in which it is at least 2.
  static func text(_ nanoseconds: Int64) -> String {
    let units: [(String, Int64)] = [
      ("h", 3600_000_000_000), ("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1000),
    ]
    guard nanoseconds > 0 else { return "0 s" }
    for (unit, size) in units where nanoseconds >= 2 * size || (unit == "s" && nanoseconds >= size) {
      // Whole seconds are kept: an hour is shown as 3600 s.
      if unit != "s", size > 1_000_000_000, nanoseconds % 1_000_000_000 == 0, nanoseconds < 7200_000_000_000 {
        continue
      }
      let tenths = nanoseconds / (size / 10) + (nanoseconds % (size / 10) >= size / 20 ? 1 : 0)
      return tenths % 10 == 0 || tenths >= 100
        ? "\((tenths + 5) / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
    }
    return "\(nanoseconds) ns"
  }
}
