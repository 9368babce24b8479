// SPDX-License-Identifier: Apache-2.0

// Lets each layer above the loop call the user's code, each thing in a function or type that bears its name; says
// "ready", and waits for its end.
//
//   named-victim transactions   commits, queues, pools, asynchronous transactions
//   named-victim ports          lookups, connections, message ports
//   named-victim foundation     streams, notifications, delegates, observers in Foundation's spelling
//   named-victim network        what an operation asks and reports, and connections in Foundation's spelling
//   named-victim display        views, actions, gestures and nodes, on the main thread
//   named-victim environment    prints what each layer believes of its environment, and ends
import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// What one thread waits for and another sets.
final class Flag: @unchecked Sendable {
  // Sendable: a semaphore of the C library, which lives as long as the process.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  func set() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}

/// A thread whose loop calls, and that has recorded what it has called when this returns.
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
default: exit(2)
}
