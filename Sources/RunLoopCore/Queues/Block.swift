// SPDX-License-Identifier: Apache-2.0

/// A closure that a loop runs once.
///
/// The wrapper keeps generic storage from allocating a thunk for every closure that it stores.
struct Block: Sendable {
  let body: @Sendable () -> Void
}

/// A block, and the modes that may run it.
enum AddressedBlock {
  case inMode(ModeState, Block)
  case inCommonModes(Block)
  case inModes(SharedBlock)
}

/// A block for several modes: it waits in the queue of each, and the first that takes it runs it.
final class SharedBlock: @unchecked Sendable {
  /// The concrete modes that may run it.
  let modes: [ModeState]
  /// Whether every common mode may run it, as they are when it runs.
  let isForCommonModes: Bool
  /// The block until it is taken.
  ///
  /// Guarded by ownership: the poster hands it over through the inbox's lock, and from then on only the loop's thread
  /// uses it.
  private(set) var block: Block?

  init(_ block: Block, modes: [ModeState], isForCommonModes: Bool) {
    self.block = block
    self.modes = modes
    self.isForCommonModes = isForCommonModes
  }

  /// Whether a mode may run it.
  func isFor(_ mode: ModeState, isCommon: Bool) -> Bool {
    (isForCommonModes && isCommon) || modes.contains { $0 === mode }
  }

  func take() -> Block? { block.take() }
}
