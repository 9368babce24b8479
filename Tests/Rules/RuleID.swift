// SPDX-License-Identifier: Apache-2.0

// This file is made by `Documentation/rules` of the list of rules in `Conformance`.

/// A rule of the documentation's page of rules, by its name.
package enum RuleID: String, CaseIterable, Sendable {
  /// A run sets its mode, calls the entry observers, makes passes, calls the exit observers, and restores the mode and
  /// the state of the enclosing run.
  case r1 = "R1"
  /// The phases of a pass have a fixed order: before timers, before sources, blocks, sources, blocks if a source
  /// performed, main queue, before waiting, wait, after waiting, one class of ready items, blocks, result.
  case r2 = "R2"
  /// A pass that has performed a source, or whose run has a timeout of zero, polls: it calls no observers around its
  /// wait and still serves ready items.
  case r3 = "R3"
  /// The main queue is not checked before the wait in the first pass of a run, nor in the pass after it was served.
  case r4 = "R4"
  /// Timers fire only after the wait, and the blocks that they post run after them in the same pass.
  case r5 = "R5"
  /// The result is the first that applies: handled source, timed out, stopped, finished.
  case r6 = "R6"
  /// A stop is discarded if another result takes precedence.
  case r7 = "R7"
  /// A run that returns after a source returns for sources, descriptor sources, ports and the main queue, not for
  /// timers, blocks, observers or wake-ups.
  case r8 = "R8"
  /// A run that returns after a source performs at most one source; the others stay signalled.
  case r9 = "R9"
  /// A pass serves one class of ready items, in the case of descriptors all that its wait found; a run that returns
  /// after a source serves one descriptor source or one message (M19).
  case r10 = "R10"
  /// Classes of ready items take turns, whatever the order of their sources; a wake-up takes no pass from them, and
  /// timers do not starve (M19).
  case r11 = "R11"
  /// A run with a timeout of zero or less makes one polling pass, and returns timed out or handled source; after the
  /// pass it returns neither stopped nor finished.
  case r12 = "R12"
  /// A timeout that is longer than 504 911 232 s, infinite or not a number never expires.
  case r13 = "R13"
  /// A run's timeout is measured from its entry on the monotonic clock and checked at the end of a pass, so a long
  /// call-out overruns it.
  case r14 = "R14"
  /// `runUntilStopped()`, like `CFRunLoopRun`, runs the default mode indefinitely, until it is stopped or finished.
  case r15 = "R15"
  /// A run of the common pseudo-mode finishes at once and is reported.
  case r16 = "R16"
  /// A run of a loop whose thread has ended finishes at once.
  case r17 = "R17"
  /// Only the loop's own thread can run it (M15).
  case r18 = "R18"
  /// No lock of the loop, a mode or an item is held during a call-out (M10).
  case r19 = "R19"
  /// Modes are equal if their names are equal.
  case r20 = "R20"
  /// A new loop has one mode, the default mode, which is common.
  case r21 = "R21"
  /// Adding an item, posting a block or stopping the mode creates it; running it, querying it, removing an item, or
  /// making it common without common items does not.
  case r22 = "R22"
  /// A mode is never removed.
  case r23 = "R23"
  /// A run of an unknown or empty mode finishes at once, calls no observer and creates no mode.
  case r24 = "R24"
  /// Sources, descriptor sources, ports, timers, and blocks that the mode can run keep it alive; observers and blocks
  /// of other modes do not.
  case r25 = "R25"
  /// Unsignalled sources and timers that are not due keep a mode alive, as does a timer that is being called.
  case r26 = "R26"
  /// On the main loop the main queue keeps every common mode alive, except in runs nested in its own work.
  case r27 = "R27"
  /// The loop checks whether a mode is empty before a run and after each pass, never before a sleep.
  case r28 = "R28"
  /// A run of a mode that contains only a block calls it and then sleeps until it times out, is stopped or is woken.
  case r28a = "R28a"
  /// A run whose mode is emptied by an entry observer makes one complete pass, including the sleep.
  case r28b = "R28b"
  /// Removing the last item of a sleeping loop's mode does not wake the loop; the run finishes at the next wake-up.
  case r28c = "R28c"
  /// A run finishes after the pass in which its last timer fires.
  case r29 = "R29"
  /// A loop's modes are those that were created; the common pseudo-mode is never one of them (M11).
  case r30 = "R30"
  /// In every call-out, the current mode is that of the innermost run; outside a run there is none.
  case r31 = "R31"
  /// The next date of a mode is that of its first timer, even if that timer is being called; a mode without timers and
  /// the common pseudo-mode have none.
  case r32 = "R32"
  /// A loop is waiting only between the observers before and after its wait, and while a polling pass polls.
  case r33 = "R33"
  /// A stop outside a run is discarded.
  case r34 = "R34"
  /// A stop ends the innermost run only, and wakes it.
  case r35 = "R35"
  /// A run that was stopped before a nested run began ends after the nested run, which is not stopped.
  case r36 = "R36"
  /// A stop by an entry observer ends the run before its first pass, and costs the next run nothing (M20).
  case r37 = "R37"
  /// A stop by an exit observer is discarded.
  case r38 = "R38"
  /// A stop before the wait of a pass lets the pass end without a sleep; a pass that has performed a source does not
  /// wait.
  case r39 = "R39"
  /// A stop by another thread during a call-out ends the run after that pass.
  case r40 = "R40"
  /// A stop takes effect once and is discarded at the end of its run.
  case r41 = "R41"
  /// A stop of a mode is kept until it ends a run of that mode, whichever mode is innermost, and creates the mode.
  case r42 = "R42"
  /// `run()` continues after a stop.
  case r43 = "R43"
  /// Several wake-ups count as one until the loop handles them.
  case r44 = "R44"
  /// A wake-up of a sleeping loop causes one more pass and ends no run.
  case r45 = "R45"
  /// A wake-up outside a run is discarded.
  case r46 = "R46"
  /// A wake-up after the wait of a pass is discarded, because the next pass follows in any case; one after the last
  /// wait of a nested run belongs to the enclosing run (M26).
  case r47 = "R47"
  /// A wake-up during a pass, before its wait, prevents that wait from sleeping; a polling pass consumes it.
  case r48 = "R48"
  /// A run nested in an observer before the wait leaves the wake-up to the enclosing run (M2).
  case r49 = "R49"
  /// Adding a timer, a descriptor source or a port with messages and moving a timer take effect on a sleeping loop; a
  /// signal and the removal of an item require a wake-up.
  case r50 = "R50"
  /// Setting a timer's date from another thread takes effect on a sleeping loop without a pass (M25).
  case r51 = "R51"
  /// No call-out delays a wake-up by another thread (M10).
  case r52 = "R52"
  /// The blocks of a mode run in the order in which they were posted, and each is released after its call.
  case r53 = "R53"
  /// Posting a block wakes a sleeping loop (M3).
  case r54 = "R54"
  /// A block for several modes runs once, in the first of them that runs; the common modes are determined then.
  case r55 = "R55"
  /// A block posted for no mode is rejected (M21).
  case r56 = "R56"
  /// Blocks of other modes keep their places ahead of blocks that are posted later.
  case r57 = "R57"
  /// A phase calls the blocks that were queued when it began; blocks posted meanwhile run in the next phase that calls
  /// blocks, and the loop does not sleep before it (M1).
  case r58 = "R58"
  /// A nested run does not run the remaining blocks of the batch it is nested in, and they do not keep it alive.
  case r59 = "R59"
  /// Blocks can be posted before the first run; blocks still queued when the thread ends are dropped.
  case r60 = "R60"
  /// A main loop whose thread has ended rejects everything (M21).
  case r61 = "R61"
  /// Signalled sources perform in ascending order, and those of equal order in the order of their first signals.
  case r62 = "R62"
  /// A source that is signalled again before it performs keeps its place and performs once.
  case r63 = "R63"
  /// The signal is cleared before the source performs: a source that signals itself performs again in the next pass,
  /// and the loop does not sleep before it.
  case r64 = "R64"
  /// A source that an earlier source of the pass signals performs in the next pass.
  case r65 = "R65"
  /// A source that an earlier source removes still performs in this pass; one that it invalidates does not.
  case r66 = "R66"
  /// A source that a nested run has performed is skipped by the enclosing pass.
  case r67 = "R67"
  /// A source that is signalled again can perform within its own call-out, in a nested run.
  case r68 = "R68"
  /// A pass has handled a source if any source performed, even if the last one did not (M4).
  case r69 = "R69"
  /// A signal wakes no loop, is kept while the source is in no mode, and has no effect on an invalid source.
  case r70 = "R70"
  /// A source can be in many modes of many loops; one signal is performed once.
  case r71 = "R71"
  /// `schedule` is called once for each concrete mode that a source enters, unless it leaves before the call.
  case r72 = "R72"
  /// `cancel` is called once for each `schedule` when the source leaves the mode: removed, invalidated, or at its
  /// loop's end; if the `schedule` is still running, its thread calls `cancel` after it returns.
  case r73 = "R73"
  /// Invalidating a source is permanent, clears its signal, and removes it from all modes and common items.
  case r74 = "R74"
  /// A source is equal to itself only (M5).
  case r75 = "R75"
  /// A source retains its loops until it leaves them.
  case r76 = "R76"
  /// A ready descriptor calls the handler of its source; the loop does not touch the payload (M6).
  case r77 = "R77"
  /// Several sources may watch one descriptor; removing one leaves the others (M6).
  case r78 = "R78"
  /// A descriptor that is ready when it is added is reported, and reported again after it is removed and added.
  case r79 = "R79"
  /// A descriptor source cannot be signalled manually.
  case r80 = "R80"
  /// A descriptor that cannot be watched is rejected with an error (M7).
  case r81 = "R81"
  /// A descriptor that stays ready is reported in every mode that watches it (M6).
  case r82 = "R82"
  /// Observers of a stage are called in ascending order, and those of equal order as they were added; the list is fixed
  /// when the stage begins.
  case r83 = "R83"
  /// An observer that does not repeat is valid during its first call and is invalidated after it, however many stages
  /// it observes.
  case r84 = "R84"
  /// During a stage, an observer that was removed is still called, and one that was invalidated is not; one that was
  /// added is called from the next stage on.
  case r85 = "R85"
  /// An observer that is being called is skipped by nested runs at every stage; the others are called.
  case r86 = "R86"
  /// An observer belongs to one loop at a time, in any number of its modes, until it leaves the last of them.
  case r87 = "R87"
  /// An observer's activities do not change; an observer without activities is never called.
  case r88 = "R88"
  /// An observer's handler is released when the observer is invalid and no call-out runs (M22).
  case r89 = "R89"
  /// An observer may remove and add itself in its own call-out.
  case r90 = "R90"
  /// A nested run calls the observers of its own entry and exit, except those being called.
  case r91 = "R91"
  /// Dates are on the monotonic clock; a date of the wall clock is converted when it is set.
  case r92 = "R92"
  /// Timers fire in the order of their dates, and those of equal dates as they were added or moved; a past date counts
  /// as the time at which it was set, but is returned unchanged.
  case r93 = "R93"
  /// The list of due timers is fixed once; a timer on it is not called if it has become invalid, was moved to a later
  /// date, was fired by a nested run, or is in no mode of the loop.
  case r94 = "R94"
  /// A timer with an interval of zero or less does not repeat; a date is not limited (M33).
  case r95 = "R95"
  /// A one-shot timer is valid during its call-out and invalid afterwards, even if the call-out sets a date.
  case r96 = "R96"
  /// A repeating timer keeps its phase; missed dates are skipped.
  case r97 = "R97"
  /// During its call-out, a timer still has the date for which it fires.
  case r98 = "R98"
  /// A date that is set in the call-out is kept and starts a new phase; after a past one, the timer fires again in the
  /// next pass (M30). An invalid timer keeps its date (M27).
  case r99 = "R99"
  /// A timer does not fire within its own call-out; other due timers fire once in nested runs.
  case r99a = "R99a"
  /// A timer belongs to one loop at a time, in any number of its modes, once in each, and fires once for each date.
  case r99b = "R99b"
  /// Invalidating a timer is permanent, removes it from all modes and common items, keeps its date (M27), and releases
  /// its block when no call-out runs (M22).
  case r99c = "R99c"
  /// A timer that is removed in its own call-out stays valid and keeps its next date, and can be added to the same or
  /// another loop.
  case r99d = "R99d"
  /// A timer that is removed or invalidated during the sleep does not fire.
  case r99e = "R99e"
  /// The loop sleeps until the first tolerance of a timer ends, and then fires all due timers; a repeating timer's
  /// tolerance is limited to half its interval, and its phase is kept (M8).
  case r99f = "R99f"
  /// A loop contains a timer or an observer, also as a common item, only if the item is in one of its modes (M9).
  case r99g = "R99g"
  /// The common pseudo-mode is recognised by its name (M11).
  case r100 = "R100"
  /// An item added to the common pseudo-mode is a common item and enters every common mode.
  case r101 = "R101"
  /// All common items enter a mode that is made common; making it common again changes nothing.
  case r102 = "R102"
  /// An item that is removed from one concrete mode enters later common modes, unless it has joined another loop (M9).
  case r103 = "R103"
  /// Removing a common item from the common pseudo-mode removes it from every common mode, even if it was added to that
  /// mode by name; it stays in other modes.
  case r104 = "R104"
  /// An item that was invalidated, or has fired for the last time, is no longer common.
  case r105 = "R105"
  /// An item that was removed from its modes one by one and is then invalidated is no longer common (M9).
  case r106 = "R106"
  /// The common pseudo-mode cannot be made common (M9).
  case r107 = "R107"
  /// Runs nest to any depth, in the same mode or another, each with its own timeout, stop and result.
  case r108 = "R108"
  /// A nested run skips the timer and observer that are being called, the blocks of the enclosing batch, and, inside
  /// the main queue's work, the main queue.
  case r109 = "R109"
  /// The main queue is served only by the main loop, in common modes, and not inside its own work.
  case r110 = "R110"
  /// One call runs all work that was queued before it, and counts as a source.
  case r111 = "R111"
  /// Work of the main actor and of the main queue runs in any run of the main loop in a common mode.
  case r112 = "R112"
  /// A thread's loop is created at the first request and is the same until the thread ends; the main loop is available
  /// from any thread.
  case r113 = "R113"
  /// A loop owns no descriptor until it watches one (M7).
  case r114 = "R114"
  /// When a thread ends, its loop's sources leave with `cancel` call-outs, its timers and observers leave (M35), and
  /// its blocks are dropped and counted (M14).
  case r115 = "R115"
  /// The end of a thread does not invalidate its loop's items, which can be added to another loop.
  case r116 = "R116"
  /// A loop that is retained after its thread's end rejects all calls and is harmless (M35).
  case r117 = "R117"
  /// A new thread never gets the loop of a thread that has ended, even if the system reuses its id.
  case r118 = "R118"
  /// A loop cannot be over-released, and the main loop is never released.
  case r119 = "R119"
  /// All functions except those that run the loop can be called from any thread at any time.
  case r120 = "R120"
  /// `run(mode:before:)` returns false if the mode has no items, and true otherwise; handling a source ends the run,
  /// firing a timer does not.
  case r121 = "R121"
  /// `run()` and `run(until:)` run the default mode repeatedly, and return at once if it has no items.
  case r122 = "R122"
  /// `limitDate(forMode:)` makes one pass without a wait and returns the date of the first timer, the distant future,
  /// or nil if nothing is left; `acceptInput(forMode:before:)` is one run.
  case r123 = "R123"
  /// `perform(_:)` posts to the default mode, `perform(inModes:block:)` to any modes.
  case r124 = "R124"
  /// A pass that could run a block or a signalled source does not sleep, and sends the stages of its wait; whether a
  /// mode is empty is asked as in Core Foundation.
  case m1 = "M1"
  /// No wake-up is lost.
  case m2 = "M2"
  /// Posting a block wakes a sleeping loop and makes no system call for one that is awake.
  case m3 = "M3"
  /// A pass has handled a source if any source performed.
  case m4 = "M4"
  /// A source is equal to itself only.
  case m5 = "M5"
  /// Descriptors are level-triggered, read and write apart, for any number of sources, and the loop reads nothing of
  /// them.
  case m6 = "M6"
  /// A descriptor that cannot be watched is rejected with an error that names the descriptor and the system's error;
  /// descriptors are opened by adding only; a number that was closed and used again is watched anew.
  case m7 = "M7"
  /// Tolerances let timers share wake-ups, and the savings are counted.
  case m8 = "M8"
  /// Common items do not leak, one that is in no mode is free for another loop, and the common pseudo-mode cannot be
  /// made common.
  case m9 = "M9"
  /// No call-out runs under any lock.
  case m10 = "M10"
  /// The common pseudo-mode is recognised by its name everywhere and is never a mode.
  case m11 = "M11"
  /// Small, negative and absent intervals and times without a number have a defined meaning; catching up is one
  /// division.
  case m12 = "M12"
  /// Time is in nanoseconds, whatever resolution the kernel reports.
  case m13 = "M13"
  /// Blocks that are left when the thread ends are dropped and counted.
  case m14 = "M14"
  /// A run by another thread fails a precondition that names both threads; Foundation's spelling does nothing, is
  /// counted, and reports it; what can throw throws `wrongThread`.
  case m15 = "M15"
  /// A stop outside every run is forgotten; a stop of a mode is kept.
  case m16 = "M16"
  /// A forked child has loops of its own; using the parent's fails a precondition.
  case m17 = "M17"
  /// A timer made with an interval fires first after it, and is released like any object; a notification queue posts in
  /// order, in every mode, soon before idle, and may be used by what it posts to.
  case m18 = "M18"
  /// A pass serves one class of ready things, in turn, and of descriptors all that its wait has found, of a port the
  /// messages that it has, up to 64; a run that returns after a source serves one, and the next one serves the next.
  /// The sources of one descriptor take turns. A stop, a removal and a nested run end a batch, and nothing that was
  /// found is kept from one run to the next. What ended the sleep begins first: a block or a job in the same pass,
  /// before the class; for a source or a hand-off the class waits for the next pass, never twice in a row. Each of n
  /// classes that are always ready is served within 4n passes, and its items take turns.
  case m19 = "M19"
  /// No stop, wake-up or date outlives its reason: none causes a pass later, nor does the stop of another mode.
  case m20 = "M20"
  /// A call that rejects its argument returns false or throws. The rejection is counted and, where it may be a mistake,
  /// reported on the standard error with the item, the loop and the thread.
  case m21 = "M21"
  /// Closures are released as soon as their item is invalid and no call-out runs.
  case m22 = "M22"
  /// Observers are called for exactly the stages that they ask for.
  case m23 = "M23"
  /// On the loop of a stopping thread every run returns at once, without a pass.
  case m24 = "M24"
  /// Moving a timer's date from another thread re-arms a sleeping loop without a pass.
  case m25 = "M25"
  /// A wake-up that a nested run leaves unanswered belongs to the run around it.
  case m26 = "M26"
  /// An invalid timer keeps its last date; Core Foundation returns the date zero.
  case m27 = "M27"
  /// A loop can be a guest of another: a run that is cut open where it would sleep. Whatever would end its sleep makes
  /// its descriptor readable until it is serviced.
  case m28 = "M28"
  /// A timer's date by the wall clock reads back as it was set, whatever it is, and two reads of it are equal; a run
  /// until a date turns it into a tick once.
  case m29 = "M29"
  /// A date that is set in the timer's own call-out counts, whatever it is; in Core Foundation only one that is later
  /// than the date it fired for.
  case m30 = "M30"
  /// Common items enter a mode that becomes common in the order in which they were added; in Core Foundation in that of
  /// their addresses.
  case m31 = "M31"
  /// A loop can wait in Core Foundation's: both are served, a source that either handles counts, a mode is empty if it
  /// is in both, and Core Foundation's drains the main queue.
  case m32 = "M32"
  /// A timer's date is kept however far ahead it lies; in Core Foundation one further ahead than 504 911 232 s counts
  /// as that far.
  case m33 = "M33"
  /// Work that is handed to a thread is done by one source of version 0 and order 0 in each mode that was ever named,
  /// all that was there when it began in one call-out; the mode is not empty from then on.
  case m34 = "M34"
  /// The loop of a thread that has ended lets its timers and observers go, though others keep it, and takes nothing
  /// new, even in a `cancel` call-out of its end.
  case m35 = "M35"
  /// A thread of this package ends its loop before any destructor of thread-specific data, others in the second round;
  /// Core Foundation ends one in the third.
  case m36 = "M36"
}
