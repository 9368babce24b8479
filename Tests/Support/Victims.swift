// SPDX-License-Identifier: Apache-2.0

import Glibc

// Helpers for the programs that the tests observe from outside.

/// Ends the process and its forked children when the test that started it ends, however it ends.
///
/// The test holds the writing end of the program's standard input, writes nothing, and sets TEST_HOLDS_INPUT in the
/// environment. Without that variable, standard input is the test's own, perhaps a pipe whose other end is closed. A
/// forked child must call this too.
package func endWithTest() {
  guard getenv("TEST_HOLDS_INPUT") != nil else { return }
  // SIGIO, which the kernel sends when the descriptor is ready and which no program here handles.
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGIO)
  pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  signal(SIGIO, SIG_DFL)
  // Foundation starts each program in its own process group.
  let owner = getpgrp() == getpid() || getpgrp() == getppid() ? -getpgrp() : getpid()
  precondition(fcntl(0, F_SETOWN, owner) == 0 && fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_ASYNC) == 0)
  var entry = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
  if poll(&entry, 1, 0) > 0 { _exit(1) }
}

/// Prints a line for the test that started the program, without buffering.
package func say(_ text: String) {
  print(text)
  fflush(nil)
}

/// Reports that the test can begin.
package func ready() { say("ready") }

/// Returns the value of an expression that cannot fail here.
@discardableResult
package func sure<Value>(_ value: @autoclosure () throws -> Value) -> Value {
  do { return try value() } catch { fatalError("\(error)") }
}

/// Blocks the calling thread until the process is killed.
package func waitForEnd() -> Never { while true { pause() } }
