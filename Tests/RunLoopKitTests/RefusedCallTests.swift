// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// A set of system calls that fail, and the failures that clients see.
struct Rejection: CustomTestStringConvertible, Sendable {
  /// The arguments of `refused-calls`, in which `E` stands for the error number.
  let setting: String
  /// The parts that do not work, with their reports, in which `E` stands for the error number.
  let failures: [String: String]
  /// Whether it is tested in every run of the tests, with one of the errors.
  let isSampled: Bool

  init(_ setting: String, sampled: Bool = false, _ failures: [String: String] = [:]) {
    self.setting = setting
    self.failures = failures
    isSampled = sampled
  }

  var testDescription: String { setting }

  /// The errors of a system call that is unknown or forbidden.
  static let errors = [ENOSYS, EPERM]

  private static let noChildren = ["spawned": "SpawnError waitid E", "killed": "SpawnError waitid E"]

  /// In Swift 6.2, the runtime lets libdispatch end the sleep of a task.
  private static let noTimers: [String: String] = {
    #if compiler(>=6.3)
      [:]
    #else
      ["tasks": "lacks libdispatch's timers"]
    #endif
  }()

  /// All calls that a part can work without, and those that other libraries make.
  ///
  /// glibc creates no threads if `clone3` or `rseq` is forbidden, but it does if they are unknown, as in old kernels.
  static let calls: [Rejection] = [
    Rejection("epoll_pwait2=E", sampled: true),
    Rejection("pidfd_open=E", sampled: true, ["children": "ChildProcessError pidfd_open E"]),
    Rejection("pidfd_send_signal=E", sampled: true),
    Rejection("close_range=E", sampled: true),
    Rejection("memfd_create=E", sampled: true),
    Rejection("process_vm_readv=E", sampled: true),
    Rejection("sched_getaffinity=E", sampled: true),
    Rejection("sched_getscheduler=E"),
    Rejection("membarrier=E", sampled: true),
    // Core Foundation needs it for its main loop. Nothing in libdispatch works without `eventfd2`.
    Rejection(
      "timerfd_create=E", sampled: true,
      [
        "guest": "RunLoopError.cannotBeHosted timerfd_create E",
        "foundation": "lacks Core Foundation's main loop",
      ].merging(noTimers) { $1 }),
    Rejection(
      "timerfd_settime=E", sampled: true,
      [
        "guest": "RunLoopError.cannotBeHosted timerfd_settime E",
        "foundation": "lacks Core Foundation's main loop",
      ].merging(noTimers) { $1 }),
    Rejection(
      "inotify_init1=E", sampled: true,
      ["files": "FileChangeError.noQueue inotify_init1 E", "tree": "FileChangeError.noQueue inotify_init1 E"]),
    Rejection(
      "inotify_add_watch=E", sampled: true,
      [
        "files": "FileChangeError.cannotWatch inotify_add_watch E",
        "tree": "FileChangeError.cannotWatch inotify_add_watch E",
      ]),
    Rejection("futex_waitv=E", sampled: true),
    Rejection("perf_event_open=E", ["hangs": "lacks the stack of a running thread: perf_event_open E"]),
    // A process that cannot be shown to be unprivileged publishes nothing.
    Rejection("prctl=E", ["metrics": "lacks a directory of the records"]),
    Rejection("madvise=E"), Rejection("fallocate=E"), Rejection("recvmmsg=E"), Rejection("sendmmsg=E"),
    Rejection("statx=E"), Rejection("signalfd4=E"), Rejection("getrandom=E"), Rejection("openat2=E"),
    Rejection("faccessat2=E"), Rejection("fchmodat2=E"), Rejection("copy_file_range=E"), Rejection("io_uring_setup=E"),
    Rejection("unshare=E"), Rejection("kcmp=E"), Rejection("userfaultfd=E"), Rejection("sched_yield=E"),
    Rejection("setpriority=E"), Rejection("set_robust_list=E"),
    Rejection("waitid=E", noChildren.merging(["children": "ChildProcessError waitid E"]) { $1 }),
  ]

  /// Settings other than a single call with one of the two errors.
  static let settings: [Rejection] = [
    // The stack of a blocked thread requires the thread's registers, which only /proc provides.
    Rejection("no-proc", ["hangs": "lacks the stack of a blocked thread: open (/proc/…/syscall) 2"]),
    Rejection("no-proc process_vm_readv=1", ["hangs": "lacks the stack of a blocked thread: open (/proc/…/syscall) 2"]),
    Rejection("no-proc close_range=38", ["hangs": "lacks the stack of a blocked thread: open (/proc/…/syscall) 2"]),
    Rejection("user=65534"),
    // Before 2.34, glibc does not call it, and later versions fall back to the older call if it is unknown.
    Rejection("clone3=38"),
    // Before 5.4, Linux does not support process descriptors there.
    Rejection(
      "waitid/0/3=22",
      [
        "spawned": "SpawnError waitid 38", "killed": "SpawnError waitid 38",
        "children": "ChildProcessError waitid 38",
      ]),
    // Linux 5.4, without later calls.
    Rejection(
      "epoll_pwait2=38 close_range=38 openat2=38 faccessat2=38 futex_waitv=38 fchmodat2=38 madvise/2/23=22"),
  ]
}

/// Runs `refused-calls` and returns the outcome of each part.
private func outcomes(_ parts: [String], _ setting: String) throws -> [String: String] {
  let (status, output) = try runProgram("refused-calls", parts + setting.split(separator: " ").map(String.init))
  try #require(status == 0, "\(setting): status \(status) after \(output)")
  var found: [String: String] = [:]
  for line in output.split(separator: "\n") {
    guard let colon = line.range(of: ": ") else { continue }
    found[String(line[..<colon.lowerBound])] = plain(line[colon.upperBound...])
  }
  return found
}

/// Removes process IDs and the texts of error numbers from a report.
private func plain(_ text: Substring) -> String {
  let known = text.replacing(/\/proc\/[0-9]+\/task\/[0-9]+/, with: "/proc/…")
  return String(known.replacing(/: [A-Z][^:;()]* \(([0-9]+)\)/) { " \($0.output.1)" })
}

/// Whether this system lets a process forbid calls, work without /proc, or change its user.
private func canSetUp(_ setting: String) -> Bool {
  // A missing or failing program is a failure that the tests themselves report.
  (try? runProgram("refused-calls", setting.split(separator: " ").map(String.init)).status) != 77
}

@Suite("On a system that denies a call", .timeLimit(.minutes(20)), .enabled(if: canSetUp("membarrier=38")))
struct RefusedCallTests {
  fileprivate static let isFull = ProcessInfo.processInfo.environment["RUNLOOP_REFUSED_CALLS"] == "all"

  /// The parts that fail here without forbidden calls, such as samples of a running thread in a container.
  private static let here = Result { try outcomes(["all"], "") }

  fileprivate static let possibleSettings = Rejection.settings.filter { canSetUp($0.setting) }

  private func expect(_ rejection: Rejection, _ error: Int32, _ found: [String: String], _ how: String) throws {
    for (part, outcome) in found {
      let expected = rejection.failures[part]?.replacing(/\bE\b/, with: "\(error)")
      let usual = try Self.here.get()[part]
      #expect(
        outcome == expected ?? usual || (expected != nil && usual != "works" && outcome == usual),
        "\(rejection.setting) with \(error), \(how): \(part)")
    }
  }

  private func check(_ rejection: Rejection, _ error: Int32) throws {
    let setting = rejection.setting.replacing(/=E\b/, with: "=\(error)")
    let parts = try Self.here.get().keys.sorted()
    try #require(parts.count > 20)
    let together = try outcomes(["all"], setting)
    #expect(together.keys.sorted() == parts)
    try expect(rejection, error, together, "one after the other")
    guard Self.isFull else { return }
    for part in parts { try expect(rejection, error, try outcomes([part], setting), "alone") }
  }

  @Test("without restrictions everything works, except that a running thread's stack may need privileges")
  func unfiltered() throws {
    for (part, outcome) in try Self.here.get() {
      #expect(outcome == "works" || (part == "hangs" && outcome.contains("perf_event_open")), "\(part): \(outcome)")
    }
  }

  @Test(
    "everything works without each system call, or reports which one was rejected",
    arguments: Array(Rejection.calls.filter { RefusedCallTests.isFull || $0.isSampled }.enumerated()).map {
      ($0.offset, $0.element)
    })
  func call(number: Int, rejection: Rejection) throws {
    for error in Self.isFull ? Rejection.errors : [Rejection.errors[number % 2]] { try check(rejection, error) }
  }

  @Test(
    "everything works without /proc, as user 65534 and on old kernels, or reports what is missing",
    arguments: RefusedCallTests.possibleSettings)
  func setting(rejection: Rejection) throws { try check(rejection, 0) }
}
