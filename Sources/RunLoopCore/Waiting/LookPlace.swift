// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import Synchronization

/// The processors that the calling thread may run on, classified by the way in which it can poll.
enum LookPlace: Sendable {
  /// No polling: the thread has a real-time policy, or its control group allows too little processor time.
  case none
  /// One processor, and no time for a second one: polling can only yield it.
  case alone
  /// One processor. Other threads of the process may run on others.
  case pinned
  /// Several processors.
  case free

  /// Queries the processors that the calling thread may run on.
  static func ask() -> LookPlace {
    let processors = Double(crl_shared_processors())
    guard processors > 0, !ProcessorQuota.isBelow(processors) else { return .none }
    if processors > 1 { return .free }
    return ProcessorQuota.isBelow(2) ? .alone : .pinned
  }
}

/// The processor time that the process's control groups allow it.
package enum ProcessorQuota {
  /// The time of the next reading of the quota; negative before the first one.
  ///
  /// Relaxed: one of several threads reads the files. The others use the previous quota, or no quota before the first
  /// reading.
  private static let nextReading = Atomic<Int64>(-1)
  /// The quota in thousandths of a processor; the largest number if there is no limit.
  ///
  /// Relaxed: no other data depends on it.
  private static let quota = Atomic<Int64>(.max)
  /// The time for which a reading is used, in nanoseconds; the quota may change while the process runs.
  private static let period: Int64 = 10_000_000_000

  /// Returns whether the process is allowed less time than the given number of processors have.
  ///
  /// Can be called from any thread. It reads the files of the control groups at most every ten seconds.
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

  /// The number of threads that can run at the same time, at least one: the number of processors that the caller may
  /// run on, or fewer if its control groups allow less time.
  package static var usableProcessors: Int { usableProcessors(of: Int(crl_usable_processors()), by: smallFile) }

  static func usableProcessors(of processors: Int, by read: (String) -> String?) -> Int {
    let allowed = processorsAllowed(by: read) ?? .infinity
    return max(1, Int(min(Double(processors), allowed.rounded(.up))))
  }

  /// Returns the lowest limit of the process's control groups and their parents, in processors; nil without a limit.
  ///
  /// - Parameter read: Returns the text of a file, or nil if it cannot be read.
  static func processorsAllowed(by read: (String) -> String?) -> Double? {
    var least: Double?
    func consider(_ quota: Double?) { if let quota { least = min(quota, least ?? quota) } }
    for line in (read("/proc/self/cgroup") ?? "0::/").split(separator: "\n") {
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { continue }
      let isUnified = fields[1].isEmpty
      guard isUnified || fields[1].split(separator: ",").contains("cpu") else { continue }
      let root = isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu"
      // From the group up to the root, because each one may have a limit.
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

  /// Returns the ratio of the allowed microseconds to the period's microseconds; nil without a limit, which the system
  /// represents as a word or a negative number.
  private static func ratio(_ words: [Substring]) -> Double? {
    guard words.count == 2, let time = Double(words[0]), let period = Double(words[1]), time > 0, period > 0 else {
      return nil
    }
    return time / period
  }
}

/// Returns up to 4096 bytes of a small system file, or nil if it is empty or cannot be read.
func smallFile(_ path: String) -> String? {
  let file = open(path, O_RDONLY | O_CLOEXEC)
  guard file >= 0 else { return nil }
  defer { close(file) }
  return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
    let count = read(file, buffer.baseAddress, buffer.count)
    return count > 0 ? String(decoding: buffer[0..<count], as: UTF8.self) : nil
  }
}
