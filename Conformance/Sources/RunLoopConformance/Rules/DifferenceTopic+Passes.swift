// SPDX-License-Identifier: Apache-2.0

extension DifferenceTopic {
  static let passes = DifferenceTopic("passes and results", passesRules)

  private static let passesRules = [
    Entry(
      "M1", title: "A loop does not sleep on top of work that it could run",
      "A pass that could run a block or a signalled source does not sleep, and sends the stages of its wait; "
        + "whether a mode is empty is asked as in Core Foundation.",
      """
      In Core Foundation a block that is posted by a block, or by an observer before the wait, stays where it is until
      something unrelated wakes the loop. So does a source that such an observer signals. Here a pass looks again
      before it waits. If there is a block or a signalled source that the mode could run, or a stop, it does not
      sleep. Everything else is as in Core Foundation: the observers before and after the wait are called even when
      there is no sleep, and the loop checks whether the mode is empty before a run and at the end of each pass, never
      before the wait. So a mode that holds only a block runs it and then waits, until its time is over or it is woken
      or stopped. *Reason:* no program posts work to have it wait for an unrelated event, and ported code relies on
      the stages and on the wait.

      An observer before the wait that posts work each time keeps the loop from ever sleeping, where Core Foundation
      makes one pass. After 10,000 such passes in a row the loop reports it on the standard error.
      """),
    Entry(
      "M4", title: "One performed source makes the pass a handled one",
      "A pass has handled a source if any source performed.",
      """
      Core Foundation remembers only the last source of a pass: if that one was invalidated in time, the pass counts
      as having handled none. Here any source that performed counts. *Reason:* the result of a run must not depend on
      a source that did nothing.
      """),
    Entry(
      "M19", title: "One class of ready things for each pass, in turn",
      "A pass serves one class of ready things, in turn, and of descriptors all that its wait has found, of a port "
        + "the messages that it has, up to 64; a run that returns after a source serves one, and the next one "
        + "serves the next. The sources of one descriptor take turns. A stop, a removal and a nested run end a "
        + "batch, and nothing that was found is kept from one run to the next. What ended the sleep begins first: a "
        + "block or a job in the same pass, before the class; for a source or a hand-off the class waits for the "
        + "next pass, never twice in a row. Each of n classes that are always ready is served within 4n passes, and "
        + "its items take turns.",
      """
      Core Foundation serves one ready port for each pass, in the order in which the kernel reports them, and its
      timers are such a port. Here there is no timer descriptor. A pass serves the due timers, the main dispatch
      queue, the descriptors that its wait has found, or the messages that one port has then (up to 64), beginning
      behind the class that was served last, and a wake-up takes no pass from them. A run that returns after a source
      serves one descriptor or one message, and the next run begins behind it, so that descriptors that are always
      ready take turns. *Reason:* nothing starves, the order does not depend on the kernel, and a wait that finds
      fifty sockets costs one pass.

      What woke the loop first begins first, as in Core Foundation, where a wake-up is itself a port. A block or a job
      that ended the sleep runs in the same pass before the class that is served after the wait. After a signalled
      source or a hand-off, that class waits for the next pass, in which phase 5 performs the source. Two such passes
      never follow each other. After an event, or if it is not known what came first, the class is served as usual.
      The main dispatch queue, which phase 7 checks in every other pass, takes no turn from the other classes by that.

      In runs that return after a source, Core Foundation performs the signalled source of the smallest order each
      time, so that one that signals itself starves those behind it. Here each of the other sources passes over a
      waiting one at most once. <doc:Order> has the bounds and the shares.

      Within a batch a stop, a removal and an invalidation are honoured, and a number that was closed and is watched
      anew is not mistaken for the old file. A nested run ends the batch, and nothing that was found is kept from one
      run to the next: what is still ready is reported again. A handler may be called for a descriptor that an earlier
      handler of the same batch has emptied, so descriptors that several handlers read must not block.
      """),
    Entry(
      "M24", title: "The loop of a stopping thread runs no more",
      "On the loop of a stopping thread every run returns at once, without a pass.",
      notShown: "Programs do not stop threads.",
      """
      In Foundation and here, a stop ends one run inside ``RunLoop/run()``, which then runs the loop again. On the loop
      of a thread that is stopping, every run returns at once, and so does ``RunLoop/run()``. *Reason:* a loop that is
      run repeatedly must end with its thread.
      """),
    Entry(
      "M34", title: "Work that is handed to a thread is a source",
      "Work that is handed to a thread is done by one source of version 0 and order 0 in each mode that was ever "
        + "named, all that was there when it began in one call-out; the mode is not empty from then on.",
      notShown: RuleChapter.foundationReason,
      """
      On Apple's systems a perform on another thread is done by a source of version 0, which Foundation on Linux does
      not have. Here it is the same: the thread has one queue, and each mode that was ever named for such work has a
      source of order 0. It is made by the first hand-off and stays, so that the mode is not empty from then on. When
      it is performed, it does, in order, all work of the queue that the mode may run and that was there when it
      began. Work that is added meanwhile signals it again, and a nested run does the rest. It counts as a handled
      source and ends ``RunLoop/run(mode:for:returnAfterSourceHandled:)-(_,Duration,_)`` with
      `returnAfterSourceHandled`. Hand-offs keep their order among each other, not against blocks and the jobs of
      actors, which come first in a pass. The source is in no count and no description of the loop's sources, and
      costs no descriptor. *Reason:* the loop of every article waits for its hand-off by `while !done &&
      run(mode:before:) {}`.
      """),
  ]
}
