// SPDX-License-Identifier: Apache-2.0

// AFNetworking's network thread, line by line, and its equivalent with a resident thread.
//
// AFNetworking 2 created one thread for the delegate calls of all its connections, and kept it alive with a port in
// its loop:
//
//     + (void)networkRequestThreadEntryPoint:(id)__unused object {
//         @autoreleasepool {
//             [[NSThread currentThread] setName:@"AFNetworking"];
//             NSRunLoop *runLoop = [NSRunLoop currentRunLoop];
//             [runLoop addPort:[NSMachPort port] forMode:NSDefaultRunLoopMode];
//             [runLoop run];
//         }
//     }

import RunLoopCore
import RunLoopThreads

/// The original design: this thread never ends.
enum NetworkRequest {
  static let thread: Thread = {
    let thread = Thread {
      Thread.current.name = "AFNetworking"
      let runLoop = RunLoop.current
      runLoop.add(Port(), forMode: .default)
      runLoop.run()
    }
    thread.start()
    return thread
  }()
}

/// An AFNetworking operation, whose start and cancellation hop to the network thread.
struct Operation: Sendable {
  let number: Int

  func start() throws {
    try NetworkRequest.thread.performAndWait { operationDidStart() }
  }

  private func operationDidStart() {
    print("operation \(number) on \(Thread.current.name ?? "a thread without a name")")
  }
}

func run() throws {
  for number in 1...3 { try Operation(number: number).start() }

  // The equivalent in one line. This thread can end, after everything that was accepted has run.
  let resident = try ResidentThread(name: "network")
  for number in 4...6 {
    try resident.perform { print("operation \(number) on \(Thread.current.name ?? "a thread without a name")") }
  }
  resident.stop()
  let report = try resident.join()
  print("ran \(report.completedCount), refused \(report.rejectedCount)")
  do {
    try resident.perform { print("never") }
  } catch {
    print("then: \(error)")
  }
}

do {
  try run()
} catch {
  fatalError("\(error)")
}
