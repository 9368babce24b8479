// SPDX-License-Identifier: Apache-2.0

import Race

// Core Foundation, as `import CoreFoundation` gives it to Swift on Linux. `--capture` is of its blocks; "CoreFoundation
// (source)" is a queue of one's own in front of a source that is signalled, as people do who find that blocks are slow.
race(
  "CoreFoundation",
  [
    "W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W7": w7, "W8": w8, "W9": w9, "W10": w10, "W11": w11,
    "W12": w12,
  ])
