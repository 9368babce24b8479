// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopHTTP
import RunLoopMessages
import RunLoopSockets

/// Prints the layers' view of the environment, and the variables left for libcurl, which reads them itself.
func printEnvironment() {
  // The client removes variables that libcurl would trust. Without it libcurl would not be linked.
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
