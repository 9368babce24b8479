// SPDX-License-Identifier: Apache-2.0

/// The shares of time that a thread spent running and runnable between observations.
///
/// They come from the kernel's `schedstat`, at no cost to the thread.
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
    // The shares of an idle thread are merged.
    if let before = all.last, before.running < 0.005, before.runnable < 0.005, share.running < 0.005,
      share.runnable < 0.005
    {
      all[all.count - 1].end = now
    } else {
      all.append(share)
    }
  }
}
