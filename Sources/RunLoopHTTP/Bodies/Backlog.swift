// SPDX-License-Identifier: Apache-2.0

/// Counts the buffered bytes of a body, and decides when to stop and resume reading from the server.
struct Backlog {
  /// Reading stops when this many bytes are buffered, and resumes at the low-water mark.
  let highWater: Int
  let lowWater: Int
  private(set) var count = 0
  private(set) var isFull = false

  init(highWater: Int, lowWater: Int) { (self.highWater, self.lowWater) = (highWater, lowWater) }

  mutating func add(_ count: Int) {
    self.count += count
    if self.count >= highWater { isFull = true }
  }

  /// Removes bytes, and returns whether reading should resume.
  mutating func remove(_ count: Int) -> Bool {
    self.count -= count
    guard isFull, self.count <= lowWater else { return false }
    isFull = false
    return true
  }

  mutating func removeAll() { count = 0 }
}
