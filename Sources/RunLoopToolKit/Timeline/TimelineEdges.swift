// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Resolving causes. A cause identifies a record by the slot of its loop and its number. It is used only if the
// record's time matches, because the slot may have been reused.
extension Timeline {
  /// Finds the cause of each item that has one.
  package mutating func connect() {
    edges = []
    lostCauses = 0
    var lanesOfSlot: [Int: [Int]] = [:]
    // The most recent loop of each slot comes first.
    let order = lanes.indices.sorted { (lanes[$0].items.first?.begin ?? 0) > (lanes[$1].items.first?.begin ?? 0) }
    for lane in order { lanesOfSlot[lanes[lane].slot, default: []].append(lane) }
    for lane in lanes.indices {
      for index in lanes[lane].items.indices {
        let item = lanes[lane].items[index]
        guard let word = item.cause, word != 0 else { continue }
        let place = Place(lane: lane, index: index)
        if item.isSleep {
          guard !item.isOpen, !item.isEndLost else { continue }
          add(.wake, word, to: place, at: item.end, from: item.begin, lanesOfSlot)
        } else if let posted = item.posted {
          // A job may pass through Swift's pool and arrive long after the call-out that created or resumed its task.
          let isJob = UInt32(item.kind) == CRL_KIND_JOB.rawValue
          add(Self.kind(of: item), word, to: place, at: posted, from: isJob ? .min : posted, lanesOfSlot)
          guard item.isAwaited, !item.isOpen, !item.isEndLost, let last = edges.last, last.to == place else { continue }
          edges.append(Edge(kind: .back, from: last.from, to: place, time: item.end))
        }
      }
    }
  }

  private static func kind(of item: Item) -> Edge.Kind {
    switch UInt32(item.kind) {
    case CRL_KIND_TIMER.rawValue: .timer
    case CRL_KIND_SOURCE0.rawValue: .signal
    case CRL_KIND_SOURCE1.rawValue: .message
    default: .post
    }
  }

  /// Adds an edge, if the cause is found.
  private mutating func add(
    _ kind: Edge.Kind, _ word: UInt64, to place: Place, at time: Int64, from begin: Int64, _ lanesOfSlot: [Int: [Int]]
  ) {
    guard let cause = resolve(word, time: time, begin: begin, lanesOfSlot) else {
      lostCauses += 1
      return
    }
    edges.append(Edge(kind: kind, from: cause, to: place, time: time))
  }

  private func resolve(_ word: UInt64, time: Int64, begin: Int64, _ lanesOfSlot: [Int: [Int]]) -> Cause? {
    if word & (1 << 63) != 0 { return .thread(Int32(truncatingIfNeeded: word)) }
    let slot = Int(word >> UInt64(CRL_CAUSE_SLOT_SHIFT))
    let number = word & (1 << UInt64(CRL_CAUSE_SLOT_SHIFT) - 1)
    for lane in lanesOfSlot[slot] ?? [] {
      guard let index = lanes[lane].index(of: number) else { continue }
      let item = lanes[lane].items[index]
      guard item.begin <= time, item.isOpen || item.isEndLost || item.end >= begin else { continue }
      // While the loop sleeps in a host, the thread does other things.
      return item.isSleep || item.isRun ? .thread(lanes[lane].thread) : .item(Place(lane: lane, index: index))
    }
    return nil
  }
}
