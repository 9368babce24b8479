// SPDX-License-Identifier: Apache-2.0

import Race

// Ports and sockets of RunLoopKit. The echo of W11 is reported as the peer "RunLoopKit (sockets)", beside the
// descriptor sources of `racer-RunLoopKit`. What is raced against the bare socket pair of M1 and M2, and the bare
// socket of M3, "floor", runs in the same process in turn.
//
// With `--serve-port DIRECTORY` or `--serve-bare DESCRIPTOR` it is the other process.
if CommandLine.arguments.count == 3, CommandLine.arguments[1].hasPrefix("--serve-") {
  serve(CommandLine.arguments[1], CommandLine.arguments[2])
}
race("RunLoopKit", ["W11": w11, "M1": m1, "M2": m2, "M3": m3])
