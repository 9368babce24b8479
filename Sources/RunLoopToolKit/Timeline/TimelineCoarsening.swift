// SPDX-License-Identifier: Apache-2.0

// Merging of records when there are too many to show.
extension Timeline {
  /// Returns a timeline with at most `limit` items by merging neighbors of the same code and kind, shorter ones first.
  ///
  /// The remaining causes and effects lead from bar to bar.
  ///
  /// - Complexity: O(n log n) in the number of items.
  package func coarsened(to limit: Int, _ names: TimelineNames) -> Timeline {
    guard itemCount > limit else { return self }
    var coarse = self
    // The maximum gap and length of merged items, in nanoseconds.
    var grain: Int64 = max(1000, (end - begin) / Int64(max(1, limit)))
    while coarse.itemCount > limit, grain <= end - begin {
      coarse = merged(by: grain, names)
      grain *= 4
    }
    if coarse.itemCount > limit { coarse.leaveOut(beyond: limit) }
    return coarse
  }

  private func merged(by grain: Int64, _ names: TimelineNames) -> Timeline {
    var coarse = self
    coarse.merged = 0
    var places: [[Int]] = []
    for lane in lanes.indices {
      let (items, place) = lanes[lane].merged(by: grain, names)
      coarse.lanes[lane].items = items
      coarse.merged += items.count { $0.count > 1 }
      places.append(place)
    }
    coarse.edges = []
    for edge in edges {
      var edge = edge
      edge.to.index = places[edge.to.lane][edge.to.index]
      if case .item(let from) = edge.from {
        let index = places[from.lane][from.index]
        if from.lane == edge.to.lane, index == edge.to.index { continue }
        edge.from = .item(Place(lane: from.lane, index: index))
      }
      // Skips duplicate edges between merged bars.
      if let last = coarse.edges.last, last.to == edge.to, last.from == edge.from, last.kind == edge.kind { continue }
      coarse.edges.append(edge)
    }
    return coarse
  }

  /// Truncates each lane, as a last resort.
  private mutating func leaveOut(beyond limit: Int) {
    let share = Double(limit) / Double(itemCount)
    var counts: [Int] = []
    for lane in lanes.indices {
      let kept = Int(Double(lanes[lane].items.count) * share)
      leftOut += lanes[lane].items.count - kept
      lanes[lane].items.removeSubrange(kept...)
      counts.append(kept)
    }
    edges = edges.filter { edge in
      guard edge.to.index < counts[edge.to.lane] else { return false }
      if case .item(let from) = edge.from { return from.index < counts[from.lane] }
      return true
    }
  }
}

extension Timeline.Lane {
  /// Returns the merged items, and the new index of each original item.
  fileprivate func merged(by grain: Int64, _ names: TimelineNames) -> (items: [Timeline.Item], places: [Int]) {
    var merged: [Timeline.Item] = []
    var places: [Int] = []
    places.reserveCapacity(items.count)
    // The last kept item within each enclosing item.
    var last: [Int: Int] = [:]
    for item in items {
      let parent = item.parent.map { places[$0] }
      if let place = last[parent ?? -1], mayJoin(merged[place], item, grain) {
        merged[place].end = max(merged[place].end, item.end)
        merged[place].count += item.count
        merged[place].isOpen = merged[place].isOpen || item.isOpen
        places.append(place)
        continue
      }
      var kept = item
      kept.parent = parent
      places.append(merged.count)
      last[parent ?? -1] = merged.count
      merged.append(kept)
    }
    return (merged, places)
  }

  private func mayJoin(_ left: Timeline.Item, _ right: Timeline.Item, _ grain: Int64) -> Bool {
    left.kind == right.kind && left.code == right.code && left.mode == right.mode && !left.isRun
      && right.begin - left.end <= grain && right.end - right.begin <= grain && !right.isAwaited && !left.isAwaited
  }
}
