// SPDX-License-Identifier: Apache-2.0

extension Timeline {
  /// A cause or effect: a kind of call-out on a thread, or nil for the thread itself.
  package struct Doer: Sendable, Hashable {
    package var thread: Int32
    package var name: String
    package var kind: UInt8?
  }

  /// The number of times that a cause had an effect.
  package struct CauseCount: Sendable, Hashable {
    package var from: Doer
    package var to: Doer
    package var count: Int
  }

  /// The counts of causes and effects, in order of first occurrence, without wake-ups.
  ///
  /// - Complexity: O(n) in the number of edges.
  package var causes: [CauseCount] {
    var found: [CauseCount] = []
    var places: [[Doer]: Int] = [:]
    for edge in edges where edge.kind != .wake {
      let (cause, effect) = (doer(edge.from), doer(.item(edge.to)))
      // The end of awaited work causes the rest of the waiting call-out.
      let (from, to) = edge.kind == .back ? (effect, cause) : (cause, effect)
      if let place = places[[from, to]] {
        found[place].count += 1
      } else {
        places[[from, to]] = found.count
        found.append(CauseCount(from: from, to: to, count: 1))
      }
    }
    return found
  }

  private func doer(_ cause: Cause) -> Doer {
    switch cause {
    case .item(let place):
      let lane = lanes[place.lane]
      return Doer(thread: lane.thread, name: lane.name, kind: lane.items[place.index].kind)
    case .thread(let number):
      let name = lanes.first { $0.thread == number }?.name ?? threads[number]
      return Doer(thread: number, name: name ?? "\(number)", kind: nil)
    }
  }
}
