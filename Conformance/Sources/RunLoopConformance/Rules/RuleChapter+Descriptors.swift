// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let descriptors = RuleChapter(
    title: "Port sources",
    rules: [
      Rule(
        "R77", "A port is a descriptor, watched for its edges; the loop reads eight bytes of it before the call-out.",
        notShown: descriptorReason, test: "a descriptor with two bytes is served twice by a handler that reads one"),
      Rule(
        "R78", "Of two sources of one descriptor in a mode, the second replaces the first.",
        notShown: descriptorReason, test: "sources of one descriptor that wait for the same take turns"),
      Rule(
        "R79", "A descriptor that is ready when it is added is reported, and again when it is removed and added.",
        notShown: descriptorReason,
        test: "a descriptor that is ready when it is added is served, and again after it left and came back"),
      Rule(
        "R80", "Signalling a port source by hand does nothing.",
        notShown: "Ours has no such call."),
      Rule(
        "R81", "A descriptor that cannot be watched is accepted, and counts as an item.",
        notShown: descriptorReason, test: "a descriptor that was closed is rejected, and nothing is added"),
      Rule(
        "R82", "What was reported in one mode is not reported in another.",
        notShown: descriptorReason,
        test: "a descriptor that is still ready is served in each mode of its source, and in no other"),
    ])
}
