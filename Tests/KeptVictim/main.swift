// SPDX-License-Identifier: Apache-2.0

// Has loops that something keeps alive, prints "ready" when they can be inspected, and waits to be killed.
//
//   kept-victim items       a thread whose loop holds one of each kind of item
//   kept-victim resident    a resident thread with a timer
//   kept-victim perform     a thread that work was handed to
//   kept-victim blocks      a thread in a call-out, with blocks queued behind it
//   kept-victim main        the main loop, which serves the main dispatch queue
//   kept-victim idle        a loop that is not run
//   kept-victim listens DIR a loop that also listens in a directory
//   kept-victim fork        a loop, and a forked child that has one too
//   kept-victim exec        a loop, then executes "kept-victim resident"
//   kept-victim churn       a thread that adds and removes items indefinitely
//   kept-victim exit        a loop, and exits
//   kept-victim deadlock    the main loop and a thread that wait for each other
//   kept-victim twice       the main loop that takes a lock twice
//   kept-victim overload    a thread whose timers are always late
//   kept-victim backlog     a thread that receives work faster than it performs it
//   kept-victim growth      a thread whose timers increase in number
//   kept-victim unread      a thread whose handler reads nothing
//   kept-victim many        a thread with many timers that are due at once, each of which takes 30 ms
//   kept-victim starved     a thread whose descriptor is ready for long before each pass
//   kept-victim stutters    a thread that hangs for 400 ms of each 600 ms
//   kept-victim drains      a thread that was stopped, and hangs in work that it still performs
//   kept-victim none        no loop
import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import TestSupport

endWithTest()
let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "items": Importer().start()
case "resident": Residents().start()
case "perform": Performs().start()
case "blocks": Blocks().start()
case "main": Mains().start()
case "idle":
  _ = RunLoop.current
  ready()
case "listens":
  do {
    try Instruments.listen(in: arguments.last)
    Residents().start()
  } catch {
    print(error)
    fflush(nil)
  }
case "fork":
  Residents().start(says: false)
  let child = forkProcess()
  if child == 0 {
    endWithTest()
    Residents().start(says: false)
    print(getpid())
    ready()
    waitForEnd()
  }
case "exec":
  Residents().start(says: false)
  execv("/proc/self/exe", [strdup(arguments[0]), strdup("resident"), nil])
case "churn": Churn().start()
case "exit":
  Residents().start()
  exit(0)
case "deadlock": Troubles.deadlock()
case "twice": Troubles.selfDeadlock()
case "overload": Troubles.overload()
case "backlog": Troubles.backlog()
case "growth": Troubles.growth()
case "unread": Troubles.unread()
case "many": Troubles.manyShort()
case "starved": Troubles.starved()
case "stutters": Troubles.stutters()
case "drains": Troubles.drains()
case "none": ready()
default: exit(2)
}
waitForEnd()
