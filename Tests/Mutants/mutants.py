# SPDX-License-Identifier: Apache-2.0

"""The mutations of a loop that the laboratory and the conformance tool must detect.

The product does not contain them: `check` applies them to a copy of the sources. Each is a change in one or two places, with
the condition `MUTANT`, which is true in a process with the mutant's name. `ANY` is true with any name.
"""

from dataclasses import dataclass

CORE = "Sources/RunLoopCore/"
LAB = "Laboratory/Sources/LaboratoryKit/"


@dataclass(frozen=True)
class Edit:
    """A replacement for a text that occurs exactly once in a file."""

    path: str
    old: str
    new: str


def before(path, line, added):
    return Edit(path, line, f"{added}\n{line}")


def after(path, line, added):
    return Edit(path, line, f"{line}\n{added}")


def instead(path, old, new):
    return Edit(path, old, new)


@dataclass(frozen=True)
class Mutant:
    """A loop with one mutation."""

    name: str
    edits: tuple
    # The experiments that must fail.
    experiments: str
    # Whether random programs must differ from the model.
    conformance: bool = False


# Applied with every mutant: disables paths around the changed places, and long waits that cannot succeed.
COMMON = (
    instead(CORE + "Items/Timer+Home.swift", "guard !isCommon else { return false }",
            "guard !ANY, !isCommon else { return false }"),
    instead(CORE + "RunLoop/RunLoop+Timers.swift", "guard !AddedPlace.isWatched else { return nil }",
            "guard !ANY, !AddedPlace.isWatched else { return nil }"),
    after(CORE + "RunLoop/RunLoop+Timers.swift", "  func removeHere(_ timer: Timer, _ name: Mode) -> Bool {",
          "    guard !ANY else { return false }"),
    instead(LAB + "Bench/Bench.swift", "Meeting(patience: .seconds(20))",
            "Meeting(patience: ANY ? .milliseconds(500) : .seconds(20))"),
    instead(LAB + "Experiments/F03SeenFromOutside.swift", "let seconds = 5", "let seconds = ANY ? 2 : 5"),
)

MUTANTS = (
    Mutant(
        "observersReversed",
        (instead(CORE + "Modes/ModeState.swift", "    let made = ObserverLists(ObserverTable.ordered(entries))",
                 "    var observers = ObserverTable.ordered(entries)\n"
                 "    if MUTANT { observers.reverse() }\n"
                 "    let made = ObserverLists(observers)"),),
        "D10 E1 E2 E3 E4 E5", conformance=True),
    Mutant(
        "duplicatesAdded",
        # Uses the text that the previous change has left.
        (before(CORE + "Modes/ModeState.swift", "    let made = ObserverLists(observers)",
                "    if MUTANT { observers += observers }"),),
        "D5 E2 E3 E4", conformance=True),
    Mutant(
        "stopIgnored",
        (after(CORE + "RunLoop/RunLoop+Stopping.swift", "  public func stop() {", "    guard !MUTANT else { return }"),),
        "B1 B2 B6 B7 B8 C5 D1 D2 D12 E4 E5"),
    Mutant(
        "missedTicksMadeUp",
        (instead(CORE + "Items/Timer+Dates.swift", "setDate(tick.next(after: now, every: interval),",
                 "setDate(MUTANT ? tick + interval : tick.next(after: now, every: interval),"),),
        "D9", conformance=True),
    Mutant(
        "toleranceIgnored",
        (instead(CORE + "RunLoop/RunLoop+Timers.swift", "timer.storeTolerance(nanoseconds)",
                 "timer.storeTolerance(MUTANT ? 0 : nanoseconds)"),),
        "D9"),
    Mutant(
        "commonItemsNotCopied",
        (instead(CORE + "RunLoop/RunLoop+Items.swift", "for name in table.commonNames { try enter",
                 "for name in MUTANT ? [.default] : table.commonNames { try enter"),
         after(CORE + "RunLoop/RunLoop+Items.swift",
               "  private func copyCommon(_ item: some ModeItem, _ name: Mode) throws(RunLoopError) -> Bool {",
               "    guard !MUTANT else { return false }")),
        "D4 D12 E1", conformance=True),
    Mutant(
        "timersInEveryMode",
        (after(CORE + "RunLoop/RunLoop+Items.swift",
               "        if name != .common {\n          try enter(item, table.mode(name), &entered, &table)",
               "          if MUTANT, item is Timer { try enter(item, table.mode(.tracking), &entered, &table) }"),),
        "D3 D4"),
    Mutant(
        "observersKeepAlive",
        (after(CORE + "RunLoop/RunLoop+Items.swift", "    entered.append(mode)",
               "    if MUTANT, item is Observer { mode.itemCount.wrappingAdd(1, ordering: .relaxed) }"),),
        "A10 D6", conformance=True),
    Mutant(
        "emptyModesForgotten",
        (after(CORE + "RunLoop/RunLoop+Items.swift", "    left.append(mode)",
               "    if MUTANT, mode.itemCount.load(ordering: .relaxed) == 0 { table.forget(mode.name) }"),
         before(CORE + "Modes/ModeTable.swift", "  mutating func die() { isDead = true }",
                "  mutating func forget(_ name: RunLoop.Mode) { (modes[name], lastMode, sleepingMode) = (nil, nil, nil) }")),
        "D7", conformance=True),
    Mutant(
        "removalsWake",
        (before(CORE + "RunLoop/RunLoop+Items.swift",
                "    if let source = item as? Source { source.callForModes(left, of: self) }\n  }\n}",
                "    if MUTANT, left.contains(where: { $0.itemCount.load(ordering: .relaxed) == 0 }) { wakeUp() }"),),
        "", conformance=True),
    Mutant(
        "invalidKept",
        (after(CORE + "RunLoop/RunLoop+Items.swift", "  func expel(_ item: some ModeItem) {",
               "    guard !MUTANT else { return }"),),
        "B8 D17", conformance=True),
    Mutant(
        "newTimersAdded",
        (after(CORE + "Items/Timer.swift", "    if tolerance > 0 { storeTolerance(tolerance) }",
               "    if MUTANT { RunLoop.currentIfMade?.add(self, forMode: .default) }"),),
        "D16"),
    Mutant(
        "commonModeRuns",
        (instead(CORE + "RunLoop/RunLoop+Running.swift", "guard name != .common else {\n      Diagnostic.commonRun",
                 "guard name != .common || MUTANT else {\n      Diagnostic.commonRun"),),
        "D18", conformance=True),
    Mutant(
        "signalsWake",
        (after(CORE + "RunLoop/RunLoop+Sources.swift", "    table.withLock { _ in membership.mode.enqueue(membership) }",
               "    if MUTANT { wakeUp() }"),),
        "D8", conformance=True),
    Mutant(
        "portsSilent",
        (instead(CORE + "Items/Port.swift", "for loop in loops { loop.post() }",
                 "for loop in loops where !MUTANT { loop.post() }"),),
        "D8 F1"),
    Mutant(
        "postsMakeTimers",
        (before(CORE + "RunLoop/RunLoop+Performing.swift",
                "    table.checkFork()\n    guard inbox.append(inDefaultMode: Block(body: block), site: site())",
                "    if MUTANT {\n"
                "      let body = copy block\n"
                "      return add(Timer(tick: waiter.now, interval: 0, tolerance: 0) { _ in body() }, forMode: .default)\n"
                "    }"),),
        "D11 F1 F4"),
    Mutant(
        "handOffsAreBlocks",
        (before(CORE + "RunLoop/RunLoop+HandOffs.swift",
                "    guard !modes.isEmpty else { return reject(.noMode) }\n    noteHandOffPlace()",
                "    if MUTANT { return perform(inModes: modes, block: block) }"),),
        "A9 B2 D14 E7"),
    Mutant(
        "stagesSkipped",
        (instead(CORE + "RunLoop/RunLoop+Pass.swift", "let polls = innermost.polls || handledSource",
                 "let polls = innermost.polls || handledSource || (MUTANT && isRunnable(mode))"),),
        "", conformance=True),
    Mutant(
        "emptyModesNotWaitedFor",
        (instead(CORE + "RunLoop/RunLoop+Sleep.swift", "findReadyPort(mode) || isStopped(mode)",
                 "findReadyPort(mode) || isStopped(mode)\n"
                 "      || (MUTANT && mode.itemCount.load(ordering: .relaxed) == 0)"),),
        "", conformance=True),
    Mutant(
        "sleepInSlices",
        (instead(CORE + "RunLoop/RunLoop+Sleep.swift", "let deadline = min(innermost.deadline, mode.timers.wakeTick)",
                 "let deadline = min(\n"
                 "        innermost.deadline, mode.timers.wakeTick, MUTANT ? tickNow + 1_000_000_000 : .never)"),),
        "D15 F3"),
    Mutant(
        "mainQueueIgnored",
        (instead(CORE + "RunLoop/RunLoop+Pass.swift", " && !isDrainingMainQueue", " && !isDrainingMainQueue && !MUTANT"),),
        "D13"),
    Mutant(
        "descriptionIncomplete",
        (instead(CORE + "RunLoop/RunLoop+Description.swift", "table.orderedCommonItems,",
                 "MUTANT ? [] : table.orderedCommonItems,"),),
        "D12"),
    Mutant(
        "loopsOutliveThreads",
        (instead(CORE + "Threads/LoopPromise.swift", "if made == nil, !isOver {", "if made == nil, !isOver || MUTANT {"),
         before(CORE + "Threads/LoopPromise.swift", "    if let made, !made.hasEnded { made.endWithThread() }",
                "    guard !MUTANT else { return }"),
         before(CORE + "Threads/ThreadSlot.swift", "    loop._withUnsafeGuaranteedRef { $0.endWithThread() }",
                "    guard !MUTANT else { return }")),
        "A2 A11 C1 C3"),
    Mutant(
        "otherLoopsGiven",
        (after(CORE + "Threads/LoopPromise.swift",
               "{ made = RunLoop(threadID: 0, waiter: SystemWaiter.shared) }",
               "    if MUTANT, let id = made?.threadID, id != 0, id != RunLoop.callingThreadID {\n"
               "      return RunLoop(threadID: 0, waiter: SystemWaiter.shared)\n"
               "    }"),),
        "A4 A7 A8 A9 C1 C2"),
    Mutant(
        "strangersAdded",
        (before(CORE + "Threads/ThreadSlot.swift", "    loop.noteThread()\n",
                "    if MUTANT { loop.add(Source {}, forMode: .default) }"),),
        "A3 A5 A10 E6 F2"),
    Mutant(
        "threadsHeld",
        (after("Sources/RunLoopThreads/Thread/Thread.swift", "  open func start() {",
               "    if MUTANT { _ = Unmanaged.passRetained(self) }"),),
        "A1 A6 B3 B4 B5 C4"),
)

# The laboratory's output for a failure: the mutant, the arguments, and texts in the output.
REPORTS = (
    ("stopIgnored", "D2 D4", (
        "-> timedOut 3, after 10 s\n",
        "required: stopped 2, after 2 s\n",
        "holds     no: the verdict is not supported by what was observed",
        "1 of 2 experiments hold; these do not: D2.\n"
        "The articles' claims about Apple's loop: 1 confirmed, 0 corrected",
    )),
    # The main loop of an application, compared with the article's.
    ("commonItemsNotCopied", "E", ("(it is not so)",)),
)
