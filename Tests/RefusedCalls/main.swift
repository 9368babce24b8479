// SPDX-License-Identifier: Apache-2.0

import CallFilter
import Glibc
import TestSupport

// Uses each part of the package as a client does, on a system where some calls fail. Prints a line for each part,
// `PART: works` or `PART: ` with the error that the client received, and exits with status 0.
//
//   refused-calls PART… [CALL=ERRNO]… [CALL/ARGUMENT/VALUE=ERRNO]… [no-proc] [user=NUMBER]
//   refused-calls all …
//
// The status is 77 if calls cannot be made to fail on this system; the output then contains the reason.

/// Exits with status 77, because the requested environment cannot be set up here.
func skip(_ what: String, _ error: Int32) -> Never {
  say("skipped: \(what): \(String(cString: strerror(-error)))")
  exit(77)
}

func refuse(_ call: Substring, _ error: Substring) {
  let words = call.split(separator: "/")
  guard let number = Int32(error) else { fatalError("no error number: \(error)") }
  let known = call_filter_number(String(words[0]))
  precondition(known >= 0, "the call \(words[0]) has no number in CallFilter.c")
  let (argument, value) = words.count == 3 ? (Int32(words[1]) ?? -1, UInt32(words[2]) ?? 0) : (-1, 0)
  let answer = call_filter_refuse(known, argument, value, number)
  if answer < 0 { skip("seccomp", answer) }
}

var names: [String] = []
// In this order, as a filter may block calls that the other steps need.
var filters: [(Substring, Substring)] = []
for argument in CommandLine.arguments.dropFirst() {
  let words = argument.split(separator: "=", maxSplits: 1)
  switch argument {
  case "no-proc":
    let answer = call_filter_hide_proc()
    if answer < 0 { skip("a namespace without /proc", answer) }
  case _ where argument.hasPrefix("user="):
    let answer = call_filter_become(UInt32(words[1]) ?? 0)
    if answer < 0 { skip("another user", answer) }
    // Another user may not be able to read a checkout in a home directory.
    if access(CommandLine.arguments[0], X_OK) != 0 { skip("its own program as another user", -errno) }
  case _ where words.count == 2: filters.append((words[0], words[1]))
  case "all": names += Parts.all.map(\.name)
  default: names.append(argument)
  }
}
for (call, error) in filters { refuse(call, error) }
// Dispatch's threads, on which tests run, block most signals, and a program inherits that.
var none = sigset_t()
sigemptyset(&none)
sigprocmask(SIG_SETMASK, &none, nil)
// A part that waits forever is killed, and its test sees that.
alarm(900)
for name in names {
  guard let part = Parts.all.first(where: { $0.name == name }) else { fatalError("no part \(name)") }
  do {
    try part.body()
    say("\(name): works")
  } catch {
    say("\(name): \(describe(error))")
  }
}
exit(0)
