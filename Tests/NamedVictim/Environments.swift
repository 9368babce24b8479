// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopHTTP
import RunLoopMessages
import RunLoopSockets

/// Prints what the layers believe of the environment, and what is left for libcurl, which asks for itself.
func printEnvironment() {
  // It takes away what libcurl would believe, and is not linked otherwise.
  let client = HTTP.Client()
  print("privileged", getgid() != getegid())
  print("directories", Environment.programDirectories.joined(separator: ":"))
  print("activation", (try? SocketActivation.take().count).map { "\($0)" } ?? "fails")
  print("watchdog", ServiceWatchdog() != nil)
  print("ports", MessagePort.Directory.user.path)
  print("record", Environment.value("RUNLOOP_DIR") ?? "-")
  print("proxy", Environment.value("http_proxy") ?? "-")
  for name in ["SSLKEYLOGFILE", "QLOGDIR", "CURL_SSL_BACKEND"] { print(name, getenv(name) != nil) }
  print("terminal", Environment.word("TERM") ?? "-")
  client.stop()
}
