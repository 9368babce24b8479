// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import Synchronization

/// The processors that the calling thread may run on, as far as a look depends on them.
enum LookPlace: Sendable {
  /// There is no look: the thread runs under a real-time policy, or its control group allows too little time.
  case none
  /// One processor, and no time for a second one: a look can only yield it.
  case alone
  /// One processor. Other threads of the process may have others.
  case pinned
  /// Several processors.
  case free

  /// Asks the system where the calling thread may run.
  static func ask() -> LookPlace {
    let processors = Double(crl_shared_processors())
    guard processors > 0, !ProcessorQuota.isBelow(processors) else { return .none }
    if processors > 1 { return .free }
    return ProcessorQuota.isBelow(2) ? .alone : .pinned
  }
}

/// The share of the processors' time that the process's control groups allow it.
package enum ProcessorQuota {
  /// When the quota is read again; negative if it has not been read.
  ///
  /// Relaxed: of several threads one reads the files; the others go by the last quota, or by none before the first was
  /// read.
  private static let nextReading = Atomic<Int64>(-1)
  /// The quota in thousandths of a processor; the largest number if there is no limit.
  ///
  /// Relaxed: the value is all that is read of it.
  private static let quota = Atomic<Int64>(.max)
  /// How long a reading holds, because the quota may be changed while the process runs.
  private static let period: Int64 = 10_000_000_000

  /// Whether the process is allowed less time than a number of processors have.
  ///
  /// Can be called from any thread. It reads some files of the system's, every ten seconds at most.
  static func isBelow(_ processors: Double) -> Bool {
    let now = crl_coarse_nanoseconds()
    let next = nextReading.load(ordering: .relaxed)
    if now >= next,
      nextReading.compareExchange(expected: next, desired: now + period, ordering: .relaxed).exchanged
    {
      quota.store(processorsAllowed(by: smallFile).map { Int64($0 * 1000) } ?? .max, ordering: .relaxed)
    }
    return Double(quota.load(ordering: .relaxed)) < processors * 1000
  }

  /// How many threads of the caller's kind can work at the same time: as many as there are processors on which it may
  /// run, and no more than its control groups allow time for; at least one.
  package static var usableProcessors: Int { usableProcessors(of: Int(crl_usable_processors()), by: smallFile) }

  static func usableProcessors(of processors: Int, by read: (String) -> String?) -> Int {
    let allowed = processorsAllowed(by: read) ?? .infinity
    return max(1, Int(min(Double(processors), allowed.rounded(.up))))
  }

  /// The least that the process's control groups and those around them allow, in processors; nil if there is no limit.
  ///
  /// - Parameter read: Returns the text of a file, or nil.
  static func processorsAllowed(by read: (String) -> String?) -> Double? {
    var least: Double?
    func consider(_ quota: Double?) { if let quota { least = min(quota, least ?? quota) } }
    for line in (read("/proc/self/cgroup") ?? "0::/").split(separator: "\n") {
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { continue }
      let isUnified = fields[1].isEmpty
      guard isUnified || fields[1].split(separator: ",").contains("cpu") else { continue }
      let root = isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu"
      // From the group up to the root, because each of them may have a limit.
      var path = fields[2].split(separator: "/")
      while true {
        let folder = ([Substring(root)] + path).joined(separator: "/")
        if isUnified {
          consider(ratio((read(folder + "/cpu.max") ?? "").split { $0 == " " || $0 == "\n" }))
        } else {
          let files = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map { read(folder + "/" + $0) ?? "" }
          consider(ratio(files.compactMap { $0.split(separator: "\n").first }))
        }
        if path.popLast() == nil { break }
      }
    }
    return least
  }

  /// The ratio of microseconds of time to microseconds of a period; nil if there is no limit, which is a word or a
  /// negative number.
  private static func ratio(_ words: [Substring]) -> Double? {
    guard words.count == 2, let time = Double(words[0]), let period = Double(words[1]), time > 0, period > 0 else {
      return nil
    }
    return time / period
  }
}

/// The beginning of a small file of the system's, of 4096 bytes at most.
func smallFile(_ path: String) -> String? {
  let file = open(path, O_RDONLY | O_CLOEXEC)
  guard file >= 0 else { return nil }
  defer { close(file) }
  return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
    let count = read(file, buffer.baseAddress, buffer.count)
    return count > 0 ? String(decoding: buffer[0..<count], as: UTF8.self) : nil
  }
}
