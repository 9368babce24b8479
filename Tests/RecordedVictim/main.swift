// SPDX-License-Identifier: Apache-2.0

// Does what is to be seen from outside, says "ready" when it can be, and waits for its end.
//
//   recorded-victim last      calls 1000 blocks, and is in one more when it is ready
//   recorded-victim load      calls blocks without end
//   recorded-victim kinds     makes each kind of call-out once
//   recorded-victim causes    lets one loop cause what another calls, in each way once
//   recorded-victim tasks     lets call-outs of one loop make 200 tasks that come to another by way of Swift's pool
//   recorded-victim idle      has a loop that sleeps
//   recorded-victim wakes     has a loop that wakes again and again
//   recorded-victim hang      has a loop in a call-out that does not end, and five blocks behind it
//   recorded-victim loops N   has so many loops that sleep
//   recorded-victim fork      is in a call-out of a loop whose forked child is, too
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
