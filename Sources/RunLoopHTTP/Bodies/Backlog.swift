// SPDX-License-Identifier: Apache-2.0

/// The bytes of a body that wait for their receiver, by which the server is held and let go on.
struct Backlog {
  /// The body is held when this many bytes wait, and continues at the low mark.
  let highWater: Int
  let lowWater: Int
  private(set) var count = 0
  private(set) var isFull = false

  init(highWater: Int, lowWater: Int) { (self.highWater, self.lowWater) = (highWater, lowWater) }

  mutating func add(_ count: Int) {
    self.count += count
    if self.count >= highWater { isFull = true }
  }

  /// Removes bytes; returns whether a held body continues.
  mutating func remove(_ count: Int) -> Bool {
    self.count -= count
    guard isFull, self.count <= lowWater else { return false }
    isFull = false
    return true
  }

  mutating func removeAll() { count = 0 }
}
