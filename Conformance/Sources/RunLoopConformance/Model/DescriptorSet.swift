// SPDX-License-Identifier: Apache-2.0

/// The descriptors that a mode waits for in the kernel: the loop's wake-up descriptor and the mode's timer
/// descriptor.
///
/// Models an edge-triggered epoll set (R11): a descriptor is appended to the ready list when an event occurs, unless
/// it is already in the list. It is removed when a wait finds it not ready, or reports it. A wait reports one
/// descriptor, the first that is ready.
struct DescriptorSet {
  enum Descriptor {
    case wakeUp
    case timer
  }

  private var ready: [Descriptor] = []
  /// The tick at which the timer descriptor expires.
  private(set) var deadline: Int?
  private var timerIsReadable = false

  /// Records an event of a descriptor.
  mutating func note(_ descriptor: Descriptor) {
    if !ready.contains(descriptor) { ready.append(descriptor) }
  }

  /// Arms the timer descriptor, and discards an earlier expiration.
  mutating func setTimer(to tick: Int, now: Int) {
    timerIsReadable = false
    deadline = tick
    expire(before: now + 1)
  }

  mutating func disarmTimer() {
    timerIsReadable = false
    deadline = nil
  }

  /// Expires the timer descriptor if its tick is before `tick`.
  mutating func expire(before tick: Int) {
    guard let deadline, deadline < tick else { return }
    self.deadline = nil
    timerIsReadable = true
    note(.timer)
  }

  /// Returns the first descriptor that is ready, and removes those before it from the list.
  mutating func firstReady(wakeUpIsReadable: Bool) -> Descriptor? {
    while let first = ready.first {
      if first == .wakeUp ? wakeUpIsReadable : timerIsReadable { return first }
      ready.removeFirst()
    }
    return nil
  }

  /// Removes the first descriptor, as a wait that reports it does, and reads the timer descriptor.
  mutating func takeFirst() {
    if ready.removeFirst() == .timer { timerIsReadable = false }
  }
}
