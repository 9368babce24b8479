// SPDX-License-Identifier: Apache-2.0

import Race

// Core Foundation, as imported into Swift on Linux. `--capture` applies to its blocks. "CoreFoundation (source)" is a
// custom queue with a source that is signalled, a common remedy for slow blocks.
race(
  "CoreFoundation",
  [
    "W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W7": w7, "W8": w8, "W9": w9, "W10": w10, "W11": w11,
    "W12": w12,
  ])
