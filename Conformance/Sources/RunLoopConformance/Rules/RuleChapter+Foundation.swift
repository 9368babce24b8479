// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let foundation = RuleChapter(
    title: "Foundation's runs",
    rules: [
      Rule(
        "R121",
        "`run(mode:before:)` is false if the mode has nothing to run, otherwise true, whatever ended it; a source ends "
          + "it, a timer does not.",
        notShown: foundationReason),
      Rule(
        "R122",
        "`run()` and `run(until:)` run the default mode turn after turn, and return at once if it has nothing to run.",
        notShown: foundationReason),
      Rule(
        "R123",
        "`limitDate(forMode:)` makes one pass without a wait and returns the date of the first timer, the distant "
          + "future, or nil if nothing is left; `acceptInput(forMode:before:)` is one run.",
        notShown: foundationReason),
      Rule(
        "R124",
        "`perform(_:)` is for the default mode, `perform(inModes:block:)` for any.",
        notShown: foundationReason),
    ])

  static let foundationReason = "It is of Foundation's layer."
}
