// SPDX-License-Identifier: Apache-2.0

// Performs work for other processes to observe, prints "ready" when it can be observed, and waits to be killed.
//
//   recorded-victim last      calls 1000 blocks, and is in one more when it is ready
//   recorded-victim load      calls blocks indefinitely
//   recorded-victim kinds     makes each kind of call-out once
//   recorded-victim causes    makes one loop cause call-outs of another, once in each way
//   recorded-victim tasks     call-outs of one loop create 200 tasks that reach another through Swift's pool
//   recorded-victim idle      has a loop that sleeps
//   recorded-victim wakes     has a loop that wakes repeatedly
//   recorded-victim hang      has a loop in a call-out that never returns, and five blocks behind it
//   recorded-victim loops N   has N loops that sleep
//   recorded-victim fork      is in a call-out of a loop, as is its forked child
//   recorded-victim exit      exits
//   recorded-victim none      has no loop
import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

endWithTest()
let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "last": lastWork()
case "load": endlessWork()
case "kinds": Kinds().run()
case "causes": Causes().run()
case "tasks": Tasks().run()
case "idle": idle(loops: 1)
case "wakes": wakes()
case "hang": hang()
case "loops": idle(loops: Int(arguments.last ?? "") ?? 1)
case "fork": forkWithin()
case "exit":
  RunLoop.current.perform {}
  RunLoop.current.run(mode: .default, for: .zero)
case "none": ready(); waitForEnd()
default: exit(2)
}
