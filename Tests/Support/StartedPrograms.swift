// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// Starts a program.
package func spawn(_ arguments: String...) -> pid_t {
  var process: pid_t = -1
  var texts: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
  texts.append(nil)
  // Dispatch's threads, on which tests run, block most signals, and background processes ignore some. The program
  // starts with none blocked and none ignored.
  var none = sigset_t()
  sigemptyset(&none)
  var attributes = posix_spawnattr_t()
  posix_spawnattr_init(&attributes)
  posix_spawnattr_setsigmask(&attributes, &none)
  var all = sigset_t()
  sigfillset(&all)
  posix_spawnattr_setsigdefault(&attributes, &all)
  posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
  defer { posix_spawnattr_destroy(&attributes) }
  let answer = posix_spawn(&process, arguments[0], nil, &attributes, texts, environ)
  for text in texts { free(text) }
  precondition(answer == 0, "\(arguments[0]) cannot be started (error \(answer))")
  return process
}

/// Waits until a child has ended, without reaping it.
package func awaitEnd(of process: pid_t) {
  var info = siginfo_t()
  while waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
}

/// Reaps a child as a program without process sources would.
package func reap(_ process: pid_t) -> Int32? {
  var status: Int32 = 0
  while true {
    let answer = waitpid(process, &status, 0)
    if answer == process { return status }
    if errno != EINTR { return nil }
  }
}
