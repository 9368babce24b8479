// SPDX-License-Identifier: Apache-2.0

/// What a mode waits for in the kernel: the loop's wake-up counter and the mode's own timer descriptor.
///
/// An epoll set, edge-triggered (R11): a descriptor enters the list of ready ones when something happens to it, unless
/// it stands there already; it leaves when a wait looks at it and finds it not ready, or reports it. A wait reports
/// one, the first that is ready.
struct DescriptorSet {
  enum Descriptor {
    case wakeUp
    case timer
  }

  private var ready: [Descriptor] = []
  /// The tick at which the timer descriptor expires.
  private(set) var deadline: Int?
  private var timerIsReadable = false

  /// Notes that something has happened to a descriptor.
  mutating func note(_ descriptor: Descriptor) {
    if !ready.contains(descriptor) { ready.append(descriptor) }
  }

  /// Arms the timer descriptor; what it had told of before is forgotten.
  mutating func setTimer(to tick: Int, now: Int) {
    timerIsReadable = false
    deadline = tick
    expire(before: now + 1)
  }

  mutating func disarmTimer() {
    timerIsReadable = false
    deadline = nil
  }

  /// Lets the timer descriptor expire if its tick is before another.
  mutating func expire(before tick: Int) {
    guard let deadline, deadline < tick else { return }
    self.deadline = nil
    timerIsReadable = true
    note(.timer)
  }

  /// The first descriptor that is ready; those before it leave the list.
  mutating func firstReady(wakeUpIsReadable: Bool) -> Descriptor? {
    while let first = ready.first {
      if first == .wakeUp ? wakeUpIsReadable : timerIsReadable { return first }
      ready.removeFirst()
    }
    return nil
  }

  /// Takes the first descriptor out of the list, as a wait that reports it; the timer descriptor is read.
  mutating func takeFirst() {
    if ready.removeFirst() == .timer { timerIsReadable = false }
  }
}
