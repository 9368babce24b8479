// SPDX-License-Identifier: Apache-2.0

/// The modes of a loop, by their numbers.
struct ModeTable {
  private var states: [ModeState?] = []

  /// The state of a mode, or nil if it does not exist.
  subscript(_ mode: Int) -> ModeState? {
    get { states.indices.contains(mode) ? states[mode] : nil }
    _modify {
      while states.count <= mode { states.append(nil) }
      yield &states[mode]
    }
  }

  /// One more than the largest number.
  var end: Int { states.count }
  /// The modes that exist.
  var made: [Int] { states.indices.filter { states[$0] != nil } }
}

/// The state of a mode, which exists as long as its loop (R23).
struct ModeState {
  var sources: [Int] = []
  /// The observers by order, then by the time of their addition (R83).
  var observers: [Int] = []
  /// The timers by tick, then by the time of their insertion (R93).
  var timers: [Int] = []
  /// Whether the mode is stopped, until a run of the mode ends by it (R42).
  var isStopped = false
  var descriptors = DescriptorSet()
  /// The tick for which the mode last armed the timer descriptor.
  var armedTick: Int?

  subscript(_ item: Item) -> Bool {
    switch item {
    case .source(let source): sources.contains(source)
    case .observer(let observer): observers.contains(observer)
    case .timer(let timer): timers.contains(timer)
    }
  }
}
