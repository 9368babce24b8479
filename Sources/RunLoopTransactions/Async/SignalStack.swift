// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// A stack for the handlers of signals on one thread, which has none otherwise.
///
/// A stack that has overflowed has no room for them: the process would end without what a handler puts in order, such
/// as the terminal.
struct SignalStack {
  private static let size = 64 << 10
  private let memory: UnsafeMutableRawPointer?

  /// Makes one for the calling thread, unless it has one or there is no memory for it.
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

  /// Takes it from the thread that it was made for, which calls this.
  func free() {
    guard let memory else { return }
    var none = stack_t()
    none.ss_flags = Int32(SS_DISABLE)
    sigaltstack(&none, nil)
    munmap(memory, Self.size)
  }
}
