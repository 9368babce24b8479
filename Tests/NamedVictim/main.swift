// SPDX-License-Identifier: Apache-2.0

// Makes each layer above the loop call user code. Each use has a function or type named after it. Prints "ready" and
// waits to be killed.
//
//   named-victim transactions   commits, queues, pools, asynchronous transactions
//   named-victim ports          lookups, connections, message ports
//   named-victim foundation     streams, notifications, delegates, observers in Foundation's spelling
//   named-victim network        an operation's questions and reports, and connections in Foundation's spelling
//   named-victim display        views, actions, gestures and nodes, on the main thread
//   named-victim hosted HOW     hangs in Core Foundation's items while it is watched; see `HostedHangs.swift`
//   named-victim environment    prints each layer's view of its environment, and exits
import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// A flag that one thread sets and another waits for.
final class Flag: @unchecked Sendable {
  // Sendable: a C semaphore that is never destroyed.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func set() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}

/// Creates a thread with a loop, and returns after its call-outs have been recorded.
func call(_ body: (ResidentThread) -> Void) {
  let worker = sure(try ResidentThread(name: "named"))
  body(worker)
  try? worker.performAndWait {}
  try? worker.performAndWait {}
  ready()
  withExtendedLifetime(worker) { waitForEnd() }
}

endWithTest()
switch CommandLine.arguments.dropFirst().first {
case "environment": printEnvironment()
case "transactions": call { Transactions(on: $0).run() }
case "ports": call { Ports(on: $0).run() }
case "foundation": call { Foundations(on: $0).run() }
case "network": call { Networks(on: $0).run() }
case "display": Displays().run()
case "hosted": HostedHangs.run(CommandLine.arguments.last ?? "")
default: exit(2)
}
