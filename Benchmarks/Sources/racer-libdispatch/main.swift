// SPDX-License-Identifier: Apache-2.0

import Race

// libdispatch from Swift: a serial queue is the loop. A cancelled timer source cannot be reused, so each one is new.
race(
  "libdispatch (Swift)",
  [
    "W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W7": w7, "W8": w8, "W9": w9, "W10": w10, "W11": w11,
    "W12": w12,
  ])
