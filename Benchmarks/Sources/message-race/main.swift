// Messages between two processes: a message port beside a bare socket pair with the same framing, turn about in one run.
//
//     message-race [requests] [rounds]
//
// The bare server waits with poll and reads without blocking, as a loop does that may have other things to do; `blocking`
// waits in recv itself and could do nothing else.

import Glibc
import RunLoopCore
import RunLoopPorts

let words = CommandLine.arguments
func number(_ index: Int, _ otherwise: Int) -> Int { words.count > index ? Int(words[index]) ?? otherwise : otherwise }

switch words.count > 1 ? words[1] : "" {
case "port": servePort(directory: words[2])
case "bare": serveBare(Int32(number(2, -1)), polls: true)
case "blocking": serveBare(Int32(number(2, -1)), polls: false)
default: race(count: number(1, 1_000), rounds: number(2, 100))
}
