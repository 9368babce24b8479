// SPDX-License-Identifier: Apache-2.0

/// The modes of a loop, by their numbers.
struct ModeTable {
  private var states: [ModeState?] = []

  /// The state of a mode; nil: it was not made.
  subscript(_ mode: Int) -> ModeState? {
    get { states.indices.contains(mode) ? states[mode] : nil }
    _modify {
      while states.count <= mode { states.append(nil) }
      yield &states[mode]
    }
  }

  /// One more than the largest number.
  var end: Int { states.count }
  /// The modes that were made.
  var made: [Int] { states.indices.filter { states[$0] != nil } }
}

/// R23: a mode stays as long as its loop.
struct ModeState {
  var sources: [Int] = []
  /// R83: by order, then as they were added.
  var observers: [Int] = []
  /// R93: by tick, then as they were inserted.
  var timers: [Int] = []
  /// R42: stopped until a run of the mode answers it.
  var isStopped = false
  var descriptors = DescriptorSet()
  /// The tick for which the timer descriptor was last armed, as far as the mode knows.
  var armedTick: Int?

  subscript(_ item: Item) -> Bool {
    switch item {
    case .source(let source): sources.contains(source)
    case .observer(let observer): observers.contains(observer)
    case .timer(let timer): timers.contains(timer)
    }
  }
}
