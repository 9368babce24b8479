// SPDX-License-Identifier: Apache-2.0

import Race

// Swift without RunLoopKit: its default executor, and executors on a dispatch queue and on a thread.
race("Swift concurrency", ["E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6])
