// SPDX-License-Identifier: Apache-2.0

/// How much of the processor a thread has got, and how long it has waited for one, from look to look.
///
/// The kernel's own count, in `schedstat`; it costs the thread nothing.
struct ThreadShares {
  private(set) var all: [Timeline.Share] = []
  private var last: (time: Int64, running: UInt64, runnable: UInt64)?

  mutating func note(_ target: TargetProcess, _ thread: Int32, at now: Int64) {
    guard let text = readWhole("/proc/\(target.number)/task/\(thread)/schedstat") else { return }
    let fields = text.split { $0 == " " || $0 == "\n" }.compactMap { UInt64($0) }
    guard fields.count >= 2 else { return }
    defer { last = (now, fields[0], fields[1]) }
    guard let last, now > last.time, fields[0] >= last.running, fields[1] >= last.runnable else { return }
    let span = Double(now - last.time)
    let share = Timeline.Share(
      begin: last.time, end: now, running: min(1, Double(fields[0] - last.running) / span),
      runnable: min(1, Double(fields[1] - last.runnable) / span))
    // An idle thread has one long share.
    if let before = all.last, before.running < 0.005, before.runnable < 0.005, share.running < 0.005,
      share.runnable < 0.005
    {
      all[all.count - 1].end = now
    } else {
      all.append(share)
    }
  }
}
