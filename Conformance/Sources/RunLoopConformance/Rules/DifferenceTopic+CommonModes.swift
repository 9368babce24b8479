// SPDX-License-Identifier: Apache-2.0

extension DifferenceTopic {
  static let commonModes = DifferenceTopic("common modes", commonModesRules)

  private static let commonModesRules = [
    Entry(
      "M9", title: "Common items do not leak, and the common pseudo-mode is no common mode",
      "Common items do not leak, one that is in no mode is free for another loop, and the common pseudo-mode cannot "
        + "be made common.",
      """
      A common timer or observer that has left its last mode is free for another loop, in Core Foundation and here.
      There it stays among the common items of the first loop forever, even if it joins the other one or is
      invalidated, and an observer is still reported as contained. Here joining another loop and invalidating take it
      out, and ``RunLoop/contains(_:forMode:)`` with ``RunLoop/Mode/common`` returns `false` for
      both kinds. If it does neither, it enters the modes that become common later, as in Core Foundation. Making the
      common pseudo-mode common overflows the stack there; here ``RunLoop/addCommonMode(_:)`` throws
      ``RunLoopError/notAMode(_:)``. *Reason:* these are defects.
      """),
    Entry(
      "M11", title: "The common pseudo-mode is recognised by its name",
      "The common pseudo-mode is recognised by its name everywhere and is never a mode.",
      """
      Core Foundation compares a pointer, so an equal string of another origin names a literal mode that never runs.
      Here the name decides, everywhere. *Reason:* a mode is its name.
      """),
    Entry(
      "M31", title: "Common items have an order",
      "Common items enter a mode that becomes common in the order in which they were added; in Core Foundation in "
        + "that of their addresses.",
      notShown: "Core Foundation's order is that of addresses, which differ from run to run.",
      """
      In Core Foundation the common items enter a mode that becomes common in the order of their addresses, and
      observers and timers of one order or date are called in that order. Here they enter it in the order in which
      they were added. *Reason:* a program should do the same each time it runs.
      """),
  ]
}
