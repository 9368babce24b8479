// SPDX-License-Identifier: Apache-2.0

import Race

// RunLoopKit. The workloads are functions in other files: closures formed at the top level belong to the main actor,
// and each call would check for it.
race(
  "RunLoopKit",
  [
    "W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W7": w7, "W8": w8, "W9": w9, "W10": w10, "W11": w11,
    "W12": w12,
    "L1": l1, "L2": l2,
    "E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6,
    "G1": g1, "G2": g2, "G3": g3, "G4": g4, "G5": g5, "G6": g6,
  ])
