// SPDX-License-Identifier: Apache-2.0

// Compares the cost of hosting: a loop by itself, one that waits in Core Foundation's, a guest of GLib's, and Core
// Foundation's by itself, in turn; and the main loop beside Core Foundation's.
//
//     hosting [COUNT]
//     hosting passes | fires | turns COUNT alone | automatic | called | ended
//
// The second form is for external tools. The difference between runs with two counts is the cost of an operation:
//
//     valgrind --tool=callgrind hosting passes 10000 alone         instructions
//     strace -c hosting fires 1000 automatic                       system calls of the main thread

let arguments = CommandLine.arguments
let works = ["passes": passes, "fires": fires, "turns": turns]
if arguments.count == 4, let work = works[arguments[1]], let count = Int(arguments[2]), count > 0,
  let service = Service(rawValue: arguments[3])
{
  try service.begin()
  work(count)
} else if arguments.count == 1 || arguments.count == 2 && Int(arguments[1]) != nil {
  let count = arguments.dropFirst().first.flatMap { Int($0) } ?? 3000
  try startThread(on: 0) { measure(count) }.join()
} else {
  fatalError("usage: hosting [COUNT] | hosting passes|fires|turns COUNT \(Service.allCases.map(\.rawValue))")
}
