// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// An alternate stack for signal handlers on a thread that has none.
///
/// After a stack overflow there is no room for handlers on the thread's own stack, and the process would end
/// without their clean-up, such as restoring the terminal.
struct SignalStack {
  private static let size = 64 << 10
  private let memory: UnsafeMutableRawPointer?

  /// Allocates a stack for the calling thread, unless the thread already has one or the allocation fails.
  init() {
    var before = stack_t()
    guard sigaltstack(nil, &before) == 0, before.ss_flags & Int32(SS_DISABLE) != 0,
      let memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      memory != MAP_FAILED
    else {
      self.memory = nil
      return
    }
    var own = stack_t(ss_sp: memory, ss_flags: 0, ss_size: Self.size)
    sigaltstack(&own, nil)
    self.memory = memory
  }

  /// Removes and frees the stack, which must be done on the thread that it was created for.
  func free() {
    guard let memory else { return }
    var none = stack_t()
    none.ss_flags = Int32(SS_DISABLE)
    sigaltstack(&none, nil)
    munmap(memory, Self.size)
  }
}
