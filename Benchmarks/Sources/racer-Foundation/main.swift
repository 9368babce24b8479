// SPDX-License-Identifier: Apache-2.0

import Race

// Foundation. It has no sources and watches no descriptors, so W8, W9 and W11 are missing.
race(
  "Foundation",
  ["W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W7": w7, "W10": w10, "W12": w12])
