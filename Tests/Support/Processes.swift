// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// Whether the thread sanitizer watches, which keeps signals back until a thread makes a call, at most one of each
/// number.
package let isSanitizedForThreads = dlsym(nil, "__tsan_init") != nil

/// `fork`, which Glibc's module does not let Swift see.
@_silgen_name("fork")
package func forkProcess() -> pid_t

/// How a child has ended.
package enum ForkedEnd: Equatable, Sendable {
  case exited(Int32)
  case killed(Int32)

  /// Waits for a child's end.
  package init(waitingFor child: pid_t) {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7f
    self = signal == 0 ? .exited(status >> 8 & 0xff) : .killed(signal)
  }

  /// Whether a precondition has failed.
  package var isTrap: Bool { self == .killed(SIGILL) || self == .killed(SIGTRAP) || self == .killed(SIGABRT) }
}

/// Forks; the child does something, and exits with its result, or with 99 if it throws.
package func inForkedChild(_ body: () throws -> Int32) -> ForkedEnd {
  let child = forkProcess()
  guard child == 0 else { return ForkedEnd(waitingFor: child) }
  // A child that hangs is killed, and its parent can tell. The threads of dispatch block all signals.
  var none = sigset_t()
  sigemptyset(&none)
  sigprocmask(SIG_SETMASK, &none, nil)
  alarm(300)
  do { _exit(try body()) } catch { _exit(99) }
}

/// The lines that the loops of a process have written on its standard error.
package func diagnostics(_ standardError: [UInt8]) -> [String] {
  String(decoding: standardError, as: UTF8.self).split(separator: "\n").map(String.init)
    .filter { $0.hasPrefix("RunLoopKit: ") }
}
