// SPDX-License-Identifier: Apache-2.0

// What hosting costs: a loop by itself, one that waits in Core Foundation's, one that is a guest of GLib's, and Core
// Foundation's by itself, in turn.
//
//     hosting [COUNT]

let count = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 3000
try startThread(on: 0) { measure(count) }.join()
