// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let foundation = RuleChapter(
    title: "Foundation's runs",
    rules: [
      Rule(
        "R121",
        "`run(mode:before:)` returns false if the mode has no items, and true otherwise; handling a source ends the "
          + "run, firing a timer does not.",
        notShown: foundationReason),
      Rule(
        "R122",
        "`run()` and `run(until:)` run the default mode repeatedly, and return at once if it has no items.",
        notShown: foundationReason),
      Rule(
        "R123",
        "`limitDate(forMode:)` makes one pass without a wait and returns the date of the first timer, the distant "
          + "future, or nil if nothing is left; `acceptInput(forMode:before:)` is one run.",
        notShown: foundationReason),
      Rule(
        "R124",
        "`perform(_:)` posts to the default mode, `perform(inModes:block:)` to any modes.",
        notShown: foundationReason),
    ])

  static let foundationReason = "The rule describes Foundation's layer."
}
