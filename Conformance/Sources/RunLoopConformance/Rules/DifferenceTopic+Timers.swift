// SPDX-License-Identifier: Apache-2.0

extension DifferenceTopic {
  static let timers = DifferenceTopic("timers", timersRules)

  private static let timersRules = [
    Entry(
      "M8", title: "Tolerances work",
      "Tolerances let timers share wake-ups, and the savings are counted.",
      notShown: "Programs have no tolerances.",
      """
      On Linux Core Foundation ignores the tolerance of a timer. Here timers share wake-ups as far as their tolerances
      allow, and ``RunLoop/Statistics/savedWakeUpCount`` counts what that saves. *Reason:* that is what a tolerance is
      for.
      """),
    Entry(
      "M12", title: "Intervals and times that are not numbers, or too small",
      "Small, negative and absent intervals and times without a number have a defined meaning; catching up is one "
        + "division.",
      notShown: "Programs count whole seconds.",
      """
      In Core Foundation an interval below a nanosecond ends the process, and catching up with a short one takes a
      step for each missed date. Here an interval between zero and a microsecond counts as a microsecond; an interval
      of zero or less means no interval, or 0.0001 s in Foundation's spelling; an interval that is not a number fails
      a precondition. Catching up is one division. A timeout that is not a number never ends. *Reason:* a small number
      should neither end nor stall a program.
      """),
    Entry(
      "M13", title: "Nanoseconds, always",
      "Time is in nanoseconds, whatever resolution the kernel reports.",
      notTested: "The loop never asks for the resolution; a test would take a kernel that reports a coarse one.",
      """
      Core Foundation on Linux takes the resolution of the clock for its unit, so where a kernel reports 4 ms, timers
      and timeouts are too long by a factor of four million. Here time is in nanoseconds. *Reason:* that is the
      clock's unit.
      """),
    Entry(
      "M18", title: "Foundation's initializers do what they say",
      "A timer made with an interval fires first after it, and is released like any object; a notification queue "
        + "posts in order, in every mode, soon before idle, and may be used by what it posts to.",
      notShown: RuleChapter.foundationReason,
      """
      In Foundation on Linux a timer made with an interval fires at once, one of interval zero does not repeat, and
      every timer is kept forever with its block. Here ``Timer/init(timeInterval:repeats:block:)`` fires first after
      its interval, takes 0.0001 s for an interval of zero or less, and is released like any object. *Reason:* this is
      the documented behaviour.

      Foundation's notification queue posts in reverse order, posts what waits for an idle loop before what does not,
      never posts in a mode that is not common, and ends the process if an observer queues another notification. Here
      `NotificationQueue` posts in order, in the modes that were asked for, at the end of the pass or when nothing is
      ready; an observer may do with the queue what it likes; and a loop does not sleep while it could post. *Reason:*
      this is the documented behaviour.
      """),
    Entry(
      "M27", title: "An invalid timer keeps its last date",
      "An invalid timer keeps its last date; Core Foundation returns the date zero.",
      """
      Core Foundation returns the date zero for a timer that is invalid. Here ``Timer/deadline`` stays what it was, as
      Foundation's documentation says. *Reason:* zero is a date too.
      """),
    Entry(
      "M29", title: "Dates of the wall clock",
      "A timer's date by the wall clock reads back as it was set, whatever it is, and two reads of it are equal; a "
        + "run until a date turns it into a tick once.",
      notShown: "The virtual clocks do not diverge.",
      """
      In Core Foundation a date after 2129 reads back as one of that year, and that of a repeating timer is taken from
      the wall clock each time it fires; Foundation compares the end of a run with the wall clock again at each turn.
      Here a timer's date reads back equal to what was set, even if it is infinite or not a number, and its next date
      is taken from the wall clock when it is first asked for. The end of a run is turned into a time of the monotonic
      clock once. *Reason:* a fire should not read a clock whose value is not used, and setting the wall clock should not
      end a run.
      """),
    Entry(
      "M30", title: "A date set in a timer's own call-out counts",
      "A date that is set in the timer's own call-out counts, whatever it is; in Core Foundation only one that is "
        + "later than the date it fired for.",
      """
      In Core Foundation a date that is set in a timer's own call-out counts only if it is later than the one for
      which the timer was called; otherwise the timer keeps its phase. A past date counts from when it was set,
      so on a clock that has moved meanwhile it is later. Here any date counts. *Reason:* what a date means should not
      depend on how fine the clock is.
      """),
    Entry(
      "M33", title: "A date may lie as far ahead as the clock counts",
      "A timer's date is kept however far ahead it lies; in Core Foundation one further ahead than 504 911 232 s "
        + "counts as that far.",
      """
      In Core Foundation a timer whose date lies further ahead than sixteen years fires after sixteen years, though
      its date reads as it was set. Here the date counts. *Reason:* a timer should not fire before its date.
      """),
  ]
}
