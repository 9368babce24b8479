// SPDX-License-Identifier: Apache-2.0

import Race

// What Swift offers without RunLoopKit: its default executor, and executors on a dispatch queue and on a thread.
