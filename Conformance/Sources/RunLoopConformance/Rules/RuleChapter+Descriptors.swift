// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let descriptors = RuleChapter(
    title: "Descriptor sources",
    rules: [
      Rule(
        "R77",
        "A port is a descriptor watched with edge triggering; the loop reads eight bytes from it before the call-out.",
        here: "A ready descriptor calls the handler of its source; the loop does not touch the payload (M6).",
        notShown: descriptorReason),
      Rule(
        "R78",
        "If a mode has two sources for one descriptor, the second replaces the first.",
        here: "Several sources may watch one descriptor; removing one leaves the others (M6).",
        notShown: descriptorReason),
      Rule(
        "R79",
        "A descriptor that is ready when it is added is reported, and reported again after it is removed and added.",
        notShown: descriptorReason),
      Rule(
        "R80",
        "A descriptor source cannot be signalled manually.",
        notTested: "There is no such function."),
      Rule(
        "R81",
        "A descriptor that cannot be watched is accepted, and counts as an item.",
        here: "A descriptor that cannot be watched is rejected with an error (M7).",
        notShown: descriptorReason),
      Rule(
        "R82",
        "A descriptor that was reported in one mode is not reported in another.",
        here: "A descriptor that stays ready is reported in every mode that watches it (M6).",
        notShown: descriptorReason),
    ])
}
