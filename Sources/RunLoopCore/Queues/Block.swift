// SPDX-License-Identifier: Apache-2.0

/// A closure that a loop runs once.
///
/// The wrapper avoids the thunk that generic storage would otherwise allocate for every closure.
struct Block: Sendable {
  let body: @Sendable () -> Void
}

/// A block with the modes that may run it.
enum AddressedBlock {
  case inMode(ModeState, Block)
  case inCommonModes(Block)
  case inModes(SharedBlock)
}

/// A block in the queues of several modes, run by the first one that takes it.
final class SharedBlock: @unchecked Sendable {
  // Sendable: the inbox's lock guards the block until the loop drains it; afterwards only the loop's thread uses it.

  let modes: [ModeState]
  /// Whether every mode that is common when the block could run may run it.
  let isForCommonModes: Bool
  /// The block, until it is taken.
  private(set) var block: Block?

  init(_ block: Block, modes: [ModeState], isForCommonModes: Bool) {
    self.block = block
    self.modes = modes
    self.isForCommonModes = isForCommonModes
  }

  func isFor(_ mode: ModeState, isCommon: Bool) -> Bool {
    (isForCommonModes && isCommon) || modes.contains { $0 === mode }
  }

  func take() -> Block? { block.take() }
}
