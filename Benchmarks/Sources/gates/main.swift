// SPDX-License-Identifier: Apache-2.0

// What operations cost, counted: allocations and system calls. Fails if one costs more than it may.
//
//     gates           all of them
//     gates NAME      one

gates()
