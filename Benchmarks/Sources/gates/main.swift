// SPDX-License-Identifier: Apache-2.0

// Counts the cost of operations: allocations, system calls, and for some the ratio of instructions to another
// operation. Fails if one exceeds its limit.
//
//     gates           all of them
//     gates NAME      one
//     gates --write-limits    makes the counts the limits of this toolchain, in Benchmarks/Limits

gates()
