// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopInstruments

/// The problems of an observed process, the most severe first.
struct Diagnosis {
  private let look: DoctorLook
  private let process: Int32
  private let names: HangNames
  private let symbolizer: Symbolizer
  /// The current hangs, and the state of the threads that they wait for.
  private var standing: [Int32: SymbolicatedHang] = [:]
  /// The hangs that ended earlier, grouped as in `runloop hangs`.
  private let earlier: [[SymbolicatedHang]]
  private let graph: WaitGraph

  init(_ look: DoctorLook) {
    self.look = look
    process = look.target.number
    names = HangNames(ExternalSymbolizer(of: look.target.user), process: look.target.number)
    symbolizer = Symbolizer(look.target.loadedImages, source: ExternalSymbolizer(of: look.target.user))
    var reports: [Int32: HangReport] = [:]
    for report in look.lasting where !report.isBacklog { reports[report.thread] = report }
    // Follows the waits to other threads, with or without a loop.
    var open = reports.values.compactMap(\.waitsFor)
    while let thread = open.popLast() {
      guard reports[thread] == nil, look.summary.ending == .time,
        let report = look.scout.standing(ofThread: thread, at: crl_monotonic_nanoseconds())
      else { continue }
      reports[thread] = report
      if let next = report.waitsFor { open.append(next) }
    }
    earlier = HangText.groups(names.name(look.ended.filter { !$0.isBacklog }))
    graph = WaitGraph(reports.compactMapValues(\.waitsFor))
    let ordered = reports.values.sorted { $0.thread < $1.thread }
    for hang in names.name(ordered) { standing[hang.report.thread] = hang }
  }

  var findings: [DoctorFinding] {
    deadlocks + hangs + earlierHangs + childPipes + unread + overloads + backlogs + growth + unseen + stopped
  }

  private func name(_ thread: Int32) -> String { standing[thread]?.report.threadName ?? "\(thread)" }

  /// Describes what a thread is blocked in, with the user's part of its stack.
  private func place(_ thread: Int32) -> [String] { standing[thread].map(place) ?? [] }

  private func place(_ hang: SymbolicatedHang) -> [String] {
    let users = hang.stack.filter { $0.place.file != nil }
    return ["\(hang.report.threadName) (\(hang.report.thread)): \(HangText.was(hang.report))"]
      + (users.isEmpty ? hang.stack : users).prefix(12).map { "    \($0.text)" }
      + (hang.report.stackProblem.map { ["    the stack is not complete: \($0)"] } ?? [])
  }

  private var deadlocks: [DoctorFinding] {
    graph.cycles.map { cycle in
      let circle = (cycle + [cycle[0]]).map(name).joined(separator: " → ")
      let title = cycle.count == 1 ? "\(name(cycle[0])) waits for itself" : "\(circle): each waits for the next"
      return DoctorFinding(
        kind: .deadlock, thread: name(cycle[0]), title: "DEADLOCK  \(title)",
        details: cycle.flatMap(place), next: "runloop hangs \(process) --for 2")
    }
  }

  private var hangs: [DoctorFinding] {
    let inCircles = Set(graph.cycles.flatMap { $0 })
    return look.lasting.filter { !$0.isBacklog && !inCircles.contains($0.thread) }.compactMap { report in
      guard let hang = standing[report.thread] else { return nil }
      // Naming the functions takes time, in which the hang may have ended.
      let age = Text.duration(look.summary.end - report.begin)
      let lasted = report.isOlder == true ? "at least \(age)" : age
      let code = hang.code.map { "  \($0.text)" } ?? ""
      var title = "HUNG  \(report.threadName) for \(lasted) in \(hang.kind ?? "a call-out")\(code)"
      if Diagnosis.resolvesNames(hang) { title += ": blocked in DNS" }
      let chain = graph.chain(from: report.thread)
      if chain.count > 1 {
        title += ": waits for " + chain.dropFirst().map(name).joined(separator: ", which waits for ")
      }
      return DoctorFinding(
        kind: .hang, thread: report.threadName, title: title, details: before(hang) + chain.flatMap(place),
        next: "runloop hangs \(process) --thread \(Diagnosis.quoted(report.threadName))")
    }
  }

  /// The hangs that ended during the observation, such as those of a loop that hangs for a part of each second.
  private var earlierHangs: [DoctorFinding] {
    earlier.compactMap { group in
      guard let longest = HangText.longest(group), !standing.values.contains(where: { isSame($0, longest) }) else {
        return nil
      }
      let report = longest.report
      let code = longest.code.map { "  \($0.text)" } ?? ""
      let times = group.count == 1 ? "once" : "\(group.count) times"
      let dns = Diagnosis.resolvesNames(longest) ? ": blocked in DNS" : ""
      return DoctorFinding(
        kind: .hang, thread: report.threadName,
        title: "HUNG  \(report.threadName) \(times), for \(HangText.lengths(group)), "
          + "in \(longest.kind ?? "a call-out")\(code)\(dns)",
        details: place(longest), next: "runloop hangs \(process) --thread \(Diagnosis.quoted(report.threadName))")
    }
  }

  /// Describes the hangs of the same thread in the same function that ended earlier.
  private func before(_ hang: SymbolicatedHang) -> [String] {
    earlier.filter { $0.first.map { isSame($0, hang) } ?? false }.map {
      "It had hung there \($0.count == 1 ? "once" : "\($0.count) times") before, for \(HangText.lengths($0))."
    }
  }

  private func isSame(_ one: SymbolicatedHang, _ other: SymbolicatedHang) -> Bool {
    HangText.groups([one, other]).count == 1
  }

  /// Whether a thread is waiting for a name server.
  private static func resolvesNames(_ hang: SymbolicatedHang) -> Bool {
    let functions = ["getaddrinfo", "gethostby", "getnameinfo", "__res_", "res_send"]
    return hang.stack.contains { place in functions.contains { place.place.function.contains($0) } }
  }

  private var childPipes: [DoctorFinding] {
    FullPipe.all(of: process).map { pipe in
      let readers = pipe.readers.map { "\($0)" }.joined(separator: ", ")
      let writer = "\(pipe.isOfChild ? "child" : "descendant") \(pipe.writer)"
      return DoctorFinding(
        kind: .childPipe,
        title: "FULL PIPE  \(writer), blocked in write to the pipe that this process reads as \(readers)",
        details: ["Read it while the program runs: one that writes more than 64 KiB waits, and does not end."],
        next: "runloop why-alive \(process)")
    }
  }

  private var unread: [DoctorFinding] {
    UnreadDescriptors.named(look.summary.unread, look.scout, look.target).map {
      DoctorFinding(kind: .unread, thread: $0.thread, title: "UNREAD  \($0.text)", next: "runloop top \(process)")
    }
  }

  /// Loops that are overloaded or whose timers or descriptors are served late.
  private var overloads: [DoctorFinding] {
    let hung = Set((look.lasting + look.ended).filter { !$0.isBacklog }.map(\.thread))
    let late = LateReport.named(look.scout, besides: hung, look.target)
    return look.loops.values.sorted { $0.last.thread < $1.last.thread }.compactMap { loop in
      let timers = late.filter { $0.found.thread == loop.last.thread }
      // A few observations could be awake by chance.
      let isAwake = loop.looks >= 20 && loop.awake * 100 >= loop.looks * 95
      guard isAwake || !timers.isEmpty, !hung.contains(loop.last.thread), loop.last.unread == 0 else { return nil }
      let thread = look.scout.name(ofThread: loop.last.thread)
      let sums = loop.meter.sums()
      let total = sums.reduce(0.0) { $0 + Double($1.sum.total) }
      let lateness = timers.prefix(3).map(\.words)
      let details = sums.prefix(3).filter { Double($0.sum.total) * 100 >= total }.map { site, sum in
        let place = symbolizer.place(.function, site.code) ?? symbolizer.place(.site, loop.meter.site(of: site))
        let share = total > 0 ? Int(Double(sum.total) * 100 / total) : 0
        return "\(share) % of it in \(KindName.of(site.kind))  \(place?.text ?? "?"), "
          + "\(Text.grouped(sum.count)) times, \(Text.duration(sum.longest)) at most"
      }
      let delay = loop.meter.delay99.map { "; work waits up to \(Text.duration($0))" } ?? ""
      return DoctorFinding(
        kind: .overload, thread: thread,
        title: isAwake
          ? "OVERLOAD  \(thread) did not sleep in \(loop.awake * 100 / loop.looks) % of the time\(delay)"
          : timers.allSatisfy(\.found.isDescriptor)
            ? "LATE  descriptors of \(thread) are served late\(delay)" : "LATE  timers of \(thread) fire late\(delay)",
        details: lateness + details, next: "runloop top \(process) --thread \(Diagnosis.quoted(thread))")
    }
  }

  private var backlogs: [DoctorFinding] {
    look.loops.values.sorted { $0.last.thread < $1.last.thread }.compactMap { loop in
      func waiting(_ face: crl_face) -> Int64 { Int64(clamping: face.posted) - Int64(clamping: face.served) }
      let growth = waiting(loop.last) - waiting(loop.first)
      let rate = Int(Double(growth) / look.seconds)
      guard growth >= 20, rate >= 10 else { return nil }
      let thread = look.scout.name(ofThread: loop.last.thread)
      let report = look.lasting.first { $0.thread == loop.last.thread && $0.isBacklog }
      let sites = report.map { names.name([$0])[0].sites } ?? []
      return DoctorFinding(
        kind: .backlog, thread: thread,
        title: "BACKLOG  \(thread): \(Text.grouped(Int(waiting(loop.last)))) wait, and "
          + "\(Text.grouped(rate)) more each second",
        details: sites.map { "\($0.count) × posted by \($0.place?.text ?? "?")" },
        next: "runloop hangs \(process) --thread \(Diagnosis.quoted(thread))")
    }
  }

  /// Growing numbers of items, such as timers that are added and never invalidated.
  private var growth: [DoctorFinding] {
    guard let kept = look.kept else { return [] }
    return kept.last.compactMap { thing, count -> (Int, DoctorFinding)? in
      let grown = count - kept.first[thing, default: 0]
      let rate = Int(Double(grown) / look.seconds)
      guard grown >= 5, rate >= 2, thing.kind != "block" else { return nil }
      let code = symbolizer.place(.function, thing.code)
      let place = code ?? symbolizer.place(.site, thing.added)
      let added = symbolizer.place(.site, thing.added).map { ["added by \($0.text)"] } ?? []
      let title =
        "LEAK  \(thing.thread) has \(Text.grouped(count)) × \(thing.kind)  \(place?.text ?? "?"), and "
        + "\(Text.grouped(rate)) more each second"
      return (
        rate,
        DoctorFinding(
          kind: .growth, thread: thing.thread, title: title, details: added,
          next: "runloop why-alive \(process) --thread \(Diagnosis.quoted(thing.thread))")
      )
    }.sorted { $0.0 > $1.0 }.map(\.1)
  }

  private var unseen: [DoctorFinding] {
    guard look.summary.unseen > 0 else { return [] }
    return [
      DoctorFinding(
        kind: .unseen, title: "UNSEEN  \(look.summary.unseen) loops have no room in the process's records")
    ]
  }

  private var stopped: [DoctorFinding] {
    guard look.summary.stopped > 0 else { return [] }
    return [
      DoctorFinding(
        kind: .stopped, title: "STOPPED  \(look.summary.stoppedText)",
        details: ["Nothing that a stopped thread does or holds can be seen."], next: "runloop ps \(process)")
    ]
  }

  /// Quotes a name for a shell.
  private static func quoted(_ name: String) -> String {
    let isPlain = !name.isEmpty && name.allSatisfy { $0.isLetter || $0.isNumber || "-_.".contains($0) }
    let parts = name.split(separator: "'", omittingEmptySubsequences: false)
    return isPlain ? name : "'\(parts.joined(separator: "'\\''"))'"
  }
}
