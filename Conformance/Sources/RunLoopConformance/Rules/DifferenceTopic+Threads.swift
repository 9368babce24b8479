// SPDX-License-Identifier: Apache-2.0

extension DifferenceTopic {
  static let threads = DifferenceTopic("threads and processes", threadsRules)

  private static let threadsRules = [
    Entry(
      "M10", title: "No call-out runs under a lock",
      "No call-out runs under any lock.",
      notShown: "It requires another thread that is blocked.",
      """
      In Core Foundation some call-outs, such as the cancellation of a source, run under a lock of the loop, and other
      threads wait for them. Here none does, and no closure is released under a lock. *Reason:* a call-out may do
      anything, even wait for another thread.
      """),
    Entry(
      "M14", title: "Blocks that never ran are counted",
      "Blocks that are left when the thread ends are dropped and counted.",
      notShown: "A program ends with its loop's thread.",
      """
      In Core Foundation the blocks that are left when a thread ends vanish. Here they are released without being
      called, and ``RunLoop/Statistics/droppedBlockCount`` counts them. *Reason:* work has a defined end.
      """),
    Entry(
      "M15", title: "A loop is run by its own thread",
      "A run by another thread fails a precondition that names both threads; Foundation's spelling does nothing, is "
        + "counted, and reports it; what can throw throws `wrongThread`.",
      notShown: "It requires a run by another thread.",
      """
      A private function of Core Foundation runs the loop of another thread. Here
      ``RunLoop/run(mode:for:returnAfterSourceHandled:)-(_,Duration,_)`` and ``RunLoop/runUntilStopped()`` fail a
      precondition that names both threads; ``RunLoop/run()`` and the other runs in Foundation's spelling do nothing
      and report it. Calls that can throw, such as `serveCoreFoundation()`, throw
      ``RunLoopError/wrongThread(loop:caller:)``. *Reason:* call-outs rely on the thread that they are called on.
      """),
    Entry(
      "M17", title: "A forked child has loops of its own",
      "A forked child has loops of its own; using the parent's fails a precondition.",
      notShown: "Programs do not fork.",
      """
      In Core Foundation a forked child shares the epoll set and the counter of its parent, and each takes the other's
      events. Here the child's thread gets a new loop, and using one of the parent's stops the child with a message.
      The parent's message ports, sockets, signal, child process and file change sources are invalid in the child.
      *Reason:* sharing them breaks both processes.
      """),
    Entry(
      "M35", title: "The loop of a thread that has ended lets go of everything",
      "The loop of a thread that has ended lets its timers and observers go, though others keep it, and takes "
        + "nothing new, even in a `cancel` call-out of its end.",
      notShown: "A program ends with its loop's thread.",
      """
      In Core Foundation a loop that is kept beyond its thread loses its sources, but keeps its timers and observers,
      and takes new items as if it could still run; a source that is added in a `cancel` call-out of the end stays in
      it. Here the loop lets go of every item when its thread ends, so that the item can join another loop, and
      rejects new items from the first `cancel` call-out on. *Reason:* the items that such a loop keeps can never be
      called.
      """),
    Entry(
      "M36", title: "A loop ends while Core Foundation can be used",
      "A thread of this package ends its loop before any destructor of thread-specific data, others in the second "
        + "round; Core Foundation ends one in the third.",
      notShown: "A program ends with its loop's thread.",
      """
      Core Foundation ends a thread's loop in the third round of the destructors of thread-specific data, as the last
      thing that it does for the thread. A loop of this package that ended then would call `cancel` handlers, and
      release what its items hold, when Core Foundation's data of the thread are gone: any use of Foundation in them
      would crash. So a `Thread` or `ResidentThread` ends its loop when its main function has returned, or in
      `Thread.exit()`, before any destructor runs. A thread that was made by other means, or that leaves by a bare
      `pthread_exit`, ends it in the second round. A destructor that runs in the first round of such a thread still
      finds the loop; a destructor that runs later gets one that has ended, and a `Thread.current` that has finished.
      *Reason:* code that is called at the end of a thread may use Foundation.

      The main thread ends its loop when it leaves by `pthread_exit`, in the first round: libdispatch does that in a
      program with an `async` main, and lets the thread come no further. From then on ``RunLoop/main`` rejects
      everything, with ``RunLoopError/mainThreadHasLeft`` from calls that can throw.
      """),
  ]
}
