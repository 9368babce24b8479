// SPDX-License-Identifier: Apache-2.0

extension DifferenceTopic {
  static let waking = DifferenceTopic("waking and stopping", wakingRules)

  private static let wakingRules = [
    Entry(
      "M2", title: "No wake-up is lost to a nested run",
      "No wake-up is lost.",
      """
      In Core Foundation a run nested in an observer before the wait takes the wake-up that was meant for the run
      around it, and that run sleeps on top of its work. Here a run keeps the wake-ups that came before the nested run
      began, and after the observers it looks again for work. *Reason:* a lost wake-up is a hang.
      """),
    Entry(
      "M3", title: "Posting a block wakes the loop",
      "Posting a block wakes a sleeping loop and makes no system call for one that is awake.",
      """
      In Core Foundation a block from another thread waits until the loop is woken. Here ``RunLoop/perform(_:)`` wakes
      a loop that sleeps, and makes no system call if it does not. *Reason:* a forgotten wake-up is the most common
      mistake with blocks, and no program needs the loop to sleep on.
      """),
    Entry(
      "M16", title: "A stop that is kept, if one asks for it",
      "A stop outside every run is forgotten; a stop of a mode is kept.",
      notShown: "Core Foundation's private function does the same: the programs of R34 and R42.",
      """
      A plain ``RunLoop/stop()`` outside every run is forgotten, as in Core Foundation, because ported code counts on
      it. ``RunLoop/stop(mode:)`` is kept until a run of the mode answers it; Core Foundation has this only as a
      private function. *Reason:* without it, a stop that arrives just before its run is lost.
      """),
    Entry(
      "M20", title: "Nothing outlives its reason",
      "No stop, wake-up or date outlives its reason: none causes a pass later, nor does the stop of another mode.",
      """
      In Core Foundation a stop that was answered or is for another mode, a wake-up between two runs, or the armed
      date of a timer that is gone can later cause one pass without a reason. Here none of them does. *Reason:* each
      such pass costs energy and confuses the reader of a trace.
      """),
    Entry(
      "M25", title: "Moving a timer makes no pass",
      "Moving a timer's date from another thread re-arms a sleeping loop without a pass.",
      """
      In Core Foundation setting the date of a timer from another thread wakes the timer's loop, which makes a pass.
      Here a loop that sleeps too long for the new date sleeps until that date instead, and no observer is called.
      *Reason:* the pass would find nothing to do.
      """),
    Entry(
      "M26", title: "An unanswered wake-up belongs to the run around",
      "A wake-up that a nested run leaves unanswered belongs to the run around it.",
      """
      In Core Foundation a wake-up that arrives at the end of a nested run, after its last wait, ends with that run.
      Here it passes to the run around it. *Reason:* a lost wake-up is a hang (M2), and the thread that wakes a loop
      does not know which run is innermost.
      """),
    Entry(
      "M28", title: "A loop can be the guest of another",
      "A loop can be a guest of another: a run that is cut open where it would sleep. Whatever would end its sleep "
        + "makes its descriptor readable until it is serviced.",
      notShown: "Programs run their loop themselves.",
      """
      A loop of Core Foundation waits by itself or not at all. Here a loop can be a guest of any loop that waits for
      descriptors: a run that is split where it would sleep. Its stages, results, stops and wake-ups are those of a
      run, with three exceptions: each turn makes its pass without waiting, after the observers of the wait; a turn
      performs one source at most; and a stop or an empty mode does not end it. *Reason:* the host has the thread, and
      must have its turn between two passes.
      """),
    Entry(
      "M32", title: "Core Foundation's loop can be served inside",
      "A loop can wait in Core Foundation's: both are served, a source that either handles counts, a mode is empty "
        + "if it is in both, and Core Foundation's drains the main queue.",
      notShown: "A program has one loop.",
      """
      In Foundation one loop serves a thread. On Linux there are two, Core Foundation's and this one. On the main
      thread, with RunLoopKit in the program, each serves the other without a call, in the mode of the same name,
      whichever is used first and whatever runs Core Foundation's, `CFRunLoopRun` included. On other threads this loop
      serves Core Foundation's without a call once that has items, and the reverse takes a call. A loop that serves
      Core Foundation's waits in it: then a source that either has handled ends a run that returns after a source, and
      a mode is empty if both are; but a source of Core Foundation's keeps no run without a time limit alive on
      another thread unless `serveCoreFoundation()` was called. *Reason:* the items that Foundation schedules by
      itself are on the other loop, and a run that only an idle source keeps never ends.
      """),
  ]
}
