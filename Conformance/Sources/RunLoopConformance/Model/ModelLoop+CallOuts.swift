// SPDX-License-Identifier: Apache-2.0

// The steps of a pass that make call-outs: observers, blocks, sources.

/// Core Foundation's bits of the activities.
enum Stage: UInt {
  case entry = 1
  case beforeTimers = 2
  case beforeSources = 4
  case beforeWaiting = 32
  case afterWaiting = 64
  case exit = 128
}

extension ModelLoop {
  /// R83, R85: calls the observers that the mode has for a stage when that begins.
  mutating func notify(_ stage: Stage, _ mode: Int) {
    // R86.
    let called = (modes[mode]?.observers ?? []).filter {
      program.observers[$0].activities & stage.rawValue != 0 && !observers[$0].isFiring
    }
    for observer in called where observers[observer].isValid {
      observers[observer].isFiring = true
      callOut(.observer(observer, stage.rawValue))
      // R84.
      if !program.observers[observer].repeats { invalidate(.observer(observer)) }
      observers[observer].isFiring = false
    }
  }

  /// R58: runs the blocks that the mode has now; blocks posted meanwhile wait for the next time.
  mutating func performBlocks(_ mode: Int) {
    guard !blocks.isEmpty else { return }
    let taken = blocks
    // R59: a nested run sees none of them.
    blocks = []
    var left: [PostedBlock] = []
    for block in taken {
      if canRun(block, mode) { callOut(.block(block.number)) } else { left.append(block) }
    }
    // R57.
    blocks = left + blocks
  }

  /// R55: whether a mode is common is determined when the block could run.
  private func canRun(_ block: PostedBlock, _ mode: Int) -> Bool {
    block.modes.contains(.mode(mode)) || (block.modes.contains(.common) && commonModes.contains(mode))
  }

  func hasBlock(_ mode: Int) -> Bool { blocks.contains { canRun($0, mode) } }

  mutating func post(_ block: Int, _ names: [ModeName]) {
    // R56, M21: a block for no mode never runs, and wakes no loop.
    guard !names.isEmpty else { return }
    blocks.append(PostedBlock(number: block, modes: Set(names)))
    // R22, R30. M11.
    for case .mode(let mode) in names { makeMode(mode) }
    if names.contains(.common), !differs(.m11) { hasLiteralCommonMode = true }
    // M3: in Core Foundation it waits until the loop is woken (R54).
    if differs(.m3) {
      let concerns = sleep.map { canRun(blocks[blocks.endIndex - 1], $0.mode) } ?? false
      poke(concerns ? .block : .unknown)
    }
  }

  /// R62: performs the signalled sources of the mode, and returns whether a source was handled.
  mutating func performSources(_ mode: Int) -> Bool {
    let marked = (modes[mode]?.sources ?? []).filter { sources[$0].signal != nil }.sorted {
      (program.sources[$0].order, sources[$0].signal ?? 0) < (program.sources[$1].order, sources[$1].signal ?? 0)
    }
    var handled = false
    let oldest = marked.compactMap { sources[$0].signal }.min() ?? 0
    for source in marked {
      // M19: in runs that return after a source, a source lets others go first once.
      if differs(.m19), innermost.returnsAfterSource, sources[source].lastTurn >= oldest { continue }
      // R66, R67: a nested run may have performed it, or it was invalidated. Its removal has no effect.
      let performs = sources[source].signal != nil
      if performs {
        // R64.
        sources[source].signal = nil
        if innermost.returnsAfterSource { sources[source].lastTurn = signalCount }
        callOut(.source(source))
      }
      // M4: in Core Foundation the last source decides (R69).
      handled = differs(.m4) ? handled || performs : performs
      // R9.
      if handled, innermost.returnsAfterSource { break }
    }
    return handled
  }

  /// R63, R70: a signalled source keeps its first signal, and the loop is not woken.
  mutating func signal(_ source: Int) {
    guard sources[source].isValid, sources[source].signal == nil else { return }
    signalCount += 1
    sources[source].signal = signalCount
    if let mode = sleep?.mode, modes[mode]?.sources.contains(source) == true { sleep?.hasSignal = true }
  }
}
