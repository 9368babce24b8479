// SPDX-License-Identifier: Apache-2.0

import Glibc

// What the programs need that are looked at from outside.

/// Ends the process, and its forked children, when the test does that has started it, however that ends.
///
/// The test holds the writing end of its standard input, writes nothing, and says so with TEST_HOLDS_INPUT in the
/// environment; without that the input is what the test itself was given, perhaps a pipe whose other end is closed. A
/// forked child calls it, too.
package func endWithTest() {
  guard getenv("TEST_HOLDS_INPUT") != nil else { return }
  // The signal of a descriptor that is ready, which no program here handles.
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGIO)
  pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  signal(SIGIO, SIG_DFL)
  // Foundation starts each program in a group of its own.
  let owner = getpgrp() == getpid() || getpgrp() == getppid() ? -getpgrp() : getpid()
  precondition(fcntl(0, F_SETOWN, owner) == 0 && fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_ASYNC) == 0)
  var entry = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
  if poll(&entry, 1, 0) > 0 { _exit(1) }
}

/// Says a line to the test that has started the program, at once.
package func say(_ text: String) {
  print(text)
  fflush(nil)
}

/// Says that the test can begin.
package func ready() { say("ready") }

/// The value of what cannot fail here.
@discardableResult
package func sure<Value>(_ value: @autoclosure () throws -> Value) -> Value {
  do { return try value() } catch { fatalError("\(error)") }
}

/// Lets the calling thread wait until the process is killed.
package func waitForEnd() -> Never { while true { pause() } }
