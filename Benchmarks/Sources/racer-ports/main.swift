// SPDX-License-Identifier: Apache-2.0

import Race

// Ports and sockets of RunLoopKit. The echo of W11 is reported as the peer "RunLoopKit (sockets)", beside the
// descriptor sources of `racer-RunLoopKit`. The peers of M1 to M3, a bare socket pair and a bare socket ("floor"),
// run alternately in the same process.
//
// With `--serve-port DIRECTORY` or `--serve-bare DESCRIPTOR` it runs as the other process.
if CommandLine.arguments.count == 3, CommandLine.arguments[1].hasPrefix("--serve-") {
  serve(CommandLine.arguments[1], CommandLine.arguments[2])
}
race("RunLoopKit", ["W11": w11, "M1": m1, "M2": m2, "M3": m3])
