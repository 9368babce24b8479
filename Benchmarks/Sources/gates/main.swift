// SPDX-License-Identifier: Apache-2.0

// What operations cost, counted: allocations, system calls, and of some the instructions beside those of another. Fails
// if one costs more than it may.
//
//     gates           all of them
//     gates NAME      one
//     gates --write-limits    makes what it counts the limits of this toolchain, in Benchmarks/Limits

gates()
