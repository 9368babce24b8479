// SPDX-License-Identifier: Apache-2.0

import Race

// Small drawings, by workers and by the loop's own thread.
race("RunLoopKit", ["D1": d1, "D2": d2])
