// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// Whether the thread sanitizer is active.
///
/// It delays signals until the thread makes a call, and keeps at most one of each number.
package let isSanitizedForThreads = dlsym(nil, "__tsan_init") != nil

/// `fork`, which Swift's Glibc module does not expose.
@_silgen_name("fork")
package func forkProcess() -> pid_t

/// How a child process ended.
package enum ForkedEnd: Equatable, Sendable {
  case exited(Int32)
  case killed(Int32)

  /// Waits for a child to end.
  package init(waitingFor child: pid_t) {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7f
    self = signal == 0 ? .exited(status >> 8 & 0xff) : .killed(signal)
  }

  /// Whether the child ended by a failed precondition.
  package var isTrap: Bool { self == .killed(SIGILL) || self == .killed(SIGTRAP) || self == .killed(SIGABRT) }
}

/// Forks a child that runs the body and exits with its result, or with 99 if it throws.
///
/// Must be called in an exit test. A child has only the calling thread, and would wait forever for a lock of Swift's
/// runtime that another thread, such as that of another test, holds during the fork.
package func inForkedChild(_ body: () throws -> Int32) -> ForkedEnd {
  var threads = stat()
  precondition(stat("/proc/self/task", &threads) != 0 || threads.st_nlink < 100, "a fork among other tests")
  let child = forkProcess()
  guard child == 0 else { return ForkedEnd(waitingFor: child) }
  // The test may kill a child that hangs. Dispatch's threads block all signals.
  var none = sigset_t()
  sigemptyset(&none)
  sigprocmask(SIG_SETMASK, &none, nil)
  alarm(300)
  do { _exit(try body()) } catch { _exit(99) }
}

/// The lines that a process's run loops wrote to its standard error.
package func diagnostics(_ standardError: [UInt8]) -> [String] {
  String(decoding: standardError, as: UTF8.self).split(separator: "\n").map(String.init)
    .filter { $0.hasPrefix("RunLoopKit: ") }
}
