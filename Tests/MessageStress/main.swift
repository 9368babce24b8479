// SPDX-License-Identifier: Apache-2.0

// Two processes exchange messages while either is killed at random. Every message must be delivered once or reported.
//
//     swift run -c release message-stress [messages] [milliseconds between kills] [seed] [most kills]
//
// Each message has two bytes in a file that all processes map, so that its state survives a kill: the sender writes
// one and the receiver the other.

import Glibc
import RunLoopCore

let arguments = CommandLine.arguments
func argument(_ index: Int, _ otherwise: Int) -> Int {
  arguments.count > index ? Int(arguments[index]) ?? otherwise : otherwise
}

switch arguments.count > 1 ? arguments[1] : "" {
case "receive": receive(in: arguments[2], count: argument(3, 0))
case "starve": starve()
case "send": send(in: arguments[2], count: argument(3, 0))
default:
  direct(
    count: argument(1, 1_000_000), interval: argument(2, 50), seed: UInt64(argument(3, 1)), mostKills: argument(4, .max)
  )
}
