// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder

/// Observes the loops of this or another process and finds their hangs; must be used on a single thread.
package final class HangScout {
  /// A hang or backlog that has begun or ended.
  package enum Finding: Sendable {
    case began(HangReport)
    case ended(HangReport)

    package var report: HangReport {
      switch self {
      case .began(let report), .ended(let report): report
      }
    }
  }

  let faces: any LoopFaces
  package let memory: ProcessMemory
  private var judge: HangJudge
  private let threshold: Int64
  private let samples: Bool
  /// Selects the loops to observe.
  private let isWanted: (Int, crl_face) -> Bool
  private var watched: [Int: WatchedLoop] = [:]
  private var reports: [ReportKey: HangReport] = [:]

  private struct ReportKey: Hashable {
    let slot: Int
    let isBacklog: Bool
  }

  /// - Parameter lateAfter: The lateness in nanoseconds from which timers are reported, or nil to ignore late timers.
  package init(
    process: Int32, faces: any LoopFaces, settings: HangJudge.Settings, lateAfter: Int64? = nil, samples: Bool = true,
    isWanted: @escaping (Int, crl_face) -> Bool = { _, _ in true }
  ) {
    self.faces = faces
    memory = ProcessMemory(process: process)
    judge = HangJudge(settings)
    threshold = settings.threshold
    self.samples = samples
    lateness = lateAfter.map { Lateness(limit: $0) }
    self.isWanted = isWanted
  }

  /// A descriptor that is ready in every wait because no code reads it.
  package struct Unread: Sendable, Hashable {
    package let thread: Int32
    package let descriptor: Int32
    /// The function that the loop calls for the descriptor.
    package let code: UInt64
  }

  /// The number of loops in the last observation.
  package private(set) var seenLoops = 0

  /// Whether the process is stopped or being debugged, so that hangs do not count; reads two files.
  package var isStopped: Bool {
    // A signal stops all threads of a process.
    ThreadState(thread: memory.process, of: memory.process) == .stopped || ThreadState.isTraced(memory.process)
  }

  /// The number of consecutive observations in which a loop with such a descriptor did not sleep.
  private var sleepless: [Int: Int] = [:]

  /// The unread descriptors of loops that have not slept for several consecutive observations.
  package var unread: [Unread] {
    sleepless.filter { $0.value >= HangScout.sleeplessLooks }.keys.sorted().map { slot in
      let face = faces.face(slot)
      return Unread(
        thread: face.thread, descriptor: Int32(truncatingIfNeeded: Int(face.unread) - 1), code: face.unread_code)
    }
  }

  private static let sleeplessLooks = 10

  private var lateness: Lateness?
  /// The timers that fired late during the observation, the most recent first.
  package var late: [Lateness.Item] { lateness?.items ?? [] }

  /// Whether the unread descriptor ended each of a loop's last sleeps, so that it does not really sleep.
  private func isWoken(_ slot: Int, _ face: crl_face) -> Bool {
    guard face.level >= CRL_RECORD.rawValue, face.number > 16 else { return false }
    let records = (face.number - 16..<face.number).compactMap { faces.record($0, of: slot) }
    let sleeps = records.filter { UInt32($0.kind) == CRL_KIND_SLEEP.rawValue && $0.end != 0 }
    return sleeps.count >= 4
      && sleeps.allSatisfy { $0.flags & UInt8(CRL_RECORD_DESCRIPTOR) != 0 && $0.item == UInt64(face.unread) - 1 }
  }

  private func noteLate(_ seen: [Int: crl_face], _ now: Int64) {
    guard lateness != nil, !seen.isEmpty else { return }
    // A debugger may have stopped only one of the threads.
    let isStopped = seen.values.allSatisfy { ThreadState(thread: $0.thread, of: memory.process) == .stopped }
    lateness?.noteProcess(isStopped: isStopped, at: now)
    for (slot, face) in seen {
      lateness?.note(
        faces.lateService(slot), slot, face.generation, face.thread, isBusy: HangScout.isBusy(face), at: now
      ) {
        guard let clock = ThreadClock(thread: face.thread, of: memory.process, at: now) else { return nil }
        return (clock, ThreadState(thread: face.thread, of: memory.process) == .runs)
      }
    }
  }

  /// The threads whose loops are served by a loop that does not report when it runs its own items, with its kind.
  package private(set) var silentHosts: [Int32: crl_host] = [:]

  private func noteSilentHosts(_ seen: [Int: crl_face]) {
    for face in seen.values where face.flags & UInt8(CRL_FACE_HOSTED) != 0 {
      let host = crl_host(rawValue: face.host)
      if host == CRL_HOST_LIBUV || host == CRL_HOST_PROGRAM { silentHosts[face.thread] = host }
    }
  }

  private func noteSleepless(_ seen: [Int: crl_face]) {
    seenLoops = seen.count
    sleepless = sleepless.filter { seen[$0.key] != nil }
    for (slot, face) in seen {
      let isSleepless = face.unread != 0 && (HangScout.isBusy(face) || isWoken(slot, face))
      sleepless[slot] = isSleepless ? sleepless[slot, default: 0] + 1 : nil
    }
  }

  /// When to observe again, or nil to wait until a loop becomes active.
  package var nextLook: Int64? { judge.nextLook }

  /// The current hang of a loop, or nil if it does not hang.
  package func hang(_ slot: Int) -> HangReport? { reports[ReportKey(slot: slot, isBacklog: false)] }

  /// The hangs that are not over.
  package var lasting: [HangReport] { reports.values.sorted { $0.begin < $1.begin } }

  /// Resumes after a pause, which does not count.
  package func resume(at now: Int64) { judge.resume(at: now) }

  /// The faces of the loops to observe.
  private func current() -> [Int: crl_face] {
    var seen: [Int: crl_face] = [:]
    for slot in 0..<faces.faceCount {
      let face = faces.face(slot)
      guard face.thread != 0, face.loop != 0, face.flags & UInt8(CRL_FACE_ENDED) == 0, isWanted(slot, face) else {
        continue
      }
      seen[slot] = face
    }
    return seen
  }

  private static func isBusy(_ face: crl_face) -> Bool {
    face.flags & UInt8(CRL_FACE_SLEEPS) == 0 && (face.depth > 0 || face.kind != 0)
  }

  /// Whether no loop is active.
  package var isQuiet: Bool { !current().values.contains { HangScout.isBusy($0) } }

  /// Observes all loops.
  package func look(at now: Int64) -> [Finding] {
    let seen = current()
    noteSleepless(seen)
    noteSilentHosts(seen)
    noteLate(seen, now)
    let looks = seen.keys.sorted().compactMap { slot in seen[slot].map { describe($0, slot, now) } }
    for watched in watched.values { watched.sampler.drain() }
    var findings: [Finding] = []
    for verdict in judge.judge(looks, at: now) { act(on: verdict, seen, now, &findings) }
    return findings
  }

  // Describes a loop for the judge.
  private func describe(_ face: crl_face, _ slot: Int, _ now: Int64) -> HangJudge.Look {
    let isBusy = HangScout.isBusy(face)
    var callOut: HangJudge.CallOut?
    if isBusy, face.level == 0 {
      // It has not made a pass since the level was raised, so only its own counters show progress.
      let progress = face.sleeps &* 31 &+ face.served &* 17 &+ UInt64(face.depth) &+ UInt64(face.host_turns) << 32
      callOut = HangJudge.CallOut(number: face.number, progress: progress)
    } else if isBusy, face.kind != 0 {
      // A call-out that runs the host's loop makes progress with each of its passes.
      let progress = UInt64(face.level) | UInt64(face.host_turns) << 32
      callOut = HangJudge.CallOut(number: face.number, progress: progress, began: begin(face, slot))
    }
    var isExcused = face.flags & UInt8(CRL_FACE_EXPECTS) != 0
    // Read only for call-outs that have been open for a while.
    var starved: Int64 = 0
    if callOut != nil, let watched = watched[slot], watched.number == face.number {
      isExcused = isExcused || watched.isStopped(memory.process)
      starved = watched.starvation(memory.process, at: now)
    }
    return HangJudge.Look(
      slot: slot, generation: face.generation, callOut: callOut, isAsleep: !isBusy, isExcused: isExcused,
      starved: starved,
      posted: face.posted, served: face.served)
  }

  /// When the open call-out began or continued after a nested run, or nil if that was not recorded.
  private func begin(_ face: crl_face, _ slot: Int) -> Int64? {
    guard face.level >= CRL_RECORD.rawValue, face.open != 0, !face.isOfHost,
      let record = faces.record(face.open, of: slot)
    else { return nil }
    if face.open == face.number { return faces.nanoseconds(record.begin) }
    guard let last = faces.record(face.number, of: slot), last.end != 0 else { return nil }
    return faces.nanoseconds(last.end)
  }

  private func act(on verdict: HangJudge.Verdict, _ seen: [Int: crl_face], _ now: Int64, _ findings: inout [Finding]) {
    switch verdict {
    case .sample(let slot):
      if let face = seen[slot] { sample(face, slot, now) }
    case .found(let slot, let since):
      guard let face = seen[slot] else { return }
      let report = report(face, slot, since, now)
      reports[ReportKey(slot: slot, isBacklog: false)] = report
      findings.append(.began(report))
    case .backlog(let slot, let since):
      guard let face = seen[slot] else { return }
      let report = backlogReport(face, slot, since, now)
      reports[ReportKey(slot: slot, isBacklog: true)] = report
      findings.append(.began(report))
    case .doubtful(let slot, let number, let since):
      doubt(slot, number, since, now, &findings)
    case .over(let slot, let isBacklog, let time):
      guard var report = reports.removeValue(forKey: ReportKey(slot: slot, isBacklog: isBacklog)) else { return }
      report.end = time
      if !isBacklog {
        if let loop = watched[slot], let end = end(of: loop, slot) { report.end = end }
        complete(&report, slot, now)
      }
      watched[slot] = nil
      findings.append(.ended(report))
    }
  }

  private func end(of loop: WatchedLoop, _ slot: Int) -> Int64? {
    guard loop.face.level >= CRL_RECORD.rawValue, !loop.face.isOfHost,
      let record = faces.record(loop.face.open, of: slot), record.end != 0
    else { return nil }
    return faces.nanoseconds(record.end)
  }

  private func watch(_ face: crl_face, _ slot: Int, _ now: Int64) -> WatchedLoop {
    if let known = watched[slot], known.number == face.number, known.generation == face.generation { return known }
    let made = WatchedLoop(face, in: memory, at: now)
    watched[slot] = made
    return made
  }

  private func sample(_ face: crl_face, _ slot: Int, _ now: Int64) {
    let loop = watch(face, slot, now)
    loop.last = ThreadClock(thread: face.thread, of: memory.process, at: now) ?? loop.last
    if samples {
      let found = loop.sampler.sample(limit: face.isOfHost ? 0 : face.stack, awaited: face.awaited)
      // Ignores samples taken after the call-out ended.
      guard faces.face(slot).number == face.number || face.kind == 0 else { return }
      for sample in found { loop.add(sample) }
    }
    let key = ReportKey(slot: slot, isBacklog: false)
    if var report = reports[key] {
      complete(&report, slot, now)
      reports[key] = report
    }
  }

  /// Reports a call-out that ended between two observations, if it was long enough.
  private func doubt(_ slot: Int, _ number: UInt64, _ since: Int64, _ now: Int64, _ findings: inout [Finding]) {
    defer { watched[slot] = nil }
    guard let loop = watched[slot], loop.number == number, let end = end(of: loop, slot),
      end - since - loop.starved >= threshold
    else { return }
    var report = report(loop.face, slot, since, now)
    findings.append(.began(report))
    report.end = end
    findings.append(.ended(report))
  }

  private func report(_ face: crl_face, _ slot: Int, _ since: Int64, _ now: Int64) -> HangReport {
    let hasRecord = face.level >= CRL_RECORD.rawValue && face.open != 0 && !face.isOfHost
    let record = hasRecord ? faces.record(face.open, of: slot) : nil
    // The code may be a call site, if nothing else is known.
    let code = record?.code ?? 0
    let place = record.map { self.site(of: $0, slot) & ~CRL_SITE_WAITS } ?? 0
    let site = code & CRL_CODE_PLACE != 0 ? code & ~CRL_CODE_PLACE : place
    var report = HangReport(
      loop: face.loop, thread: face.thread, threadName: threadName(face, slot),
      kind: face.isOfHost ? CallOutName.host : face.kind == 0 ? nil : CallOutName.of(face.kind),
      code: code == 0 || code & CRL_CODE_PLACE != 0 ? nil : address(code),
      postedFrom: site == 0 ? nil : address(site), mode: faces.mode(face.mode),
      depth: Int(face.depth), begin: since, isOlder: judge.isOlder(slot) ? true : nil, end: nil, processor: .blocked,
      shares: nil, blockedIn: nil, waitsFor: nil,
      waitsForName: nil, stack: [], stackCounts: [], provedFrames: 0, stackProblem: nil, samples: 0, isBacklog: false,
      sites: [], leftOut: 0)
    complete(&report, slot, now)
    return report
  }

  /// The place that caused the recorded work, by posting it or by signaling, adding or moving an item, or zero if
  /// unknown.
  private func site(of record: crl_record, _ slot: Int) -> UInt64 {
    if record.flags & UInt8(CRL_RECORD_CAUSED) != 0 { return record.item }
    return record.kind <= CRL_KIND_JOB.rawValue ? faces.post(record.item, of: slot)?.site ?? 0 : 0
  }

  /// Adds the samples taken so far.
  private func complete(_ report: inout HangReport, _ slot: Int, _ now: Int64) {
    guard let loop = watched[slot] else { return }
    report.samples = loop.samples.count
    report.stackProblem = loop.sampler.problem(hasSamples: !loop.samples.isEmpty)
    if let path = HeaviestPath(loop.samples) {
      let best = path.sample
      report.stackProblem = report.stackProblem ?? best.gap
      report.stack = path.steps.enumerated().map { index, step in
        address(index == 0 && path.endsInCall ? step.address &- 1 : step.address)
      }
      report.stackCounts = path.steps.map(\.count)
      report.provedFrames = path.steps.prefix { $0.isProved }.count
      report.blockedIn = best.blockedIn
      // After the hang, the thread may have ended.
      if report.waitsFor != best.waitsFor { report.waitsForName = best.waitsFor.map { name(ofThread: $0) } }
      report.waitsFor = best.waitsFor
    }
    if let first = loop.first,
      let last = ThreadClock(thread: loop.face.thread, of: memory.process, at: now) ?? loop.last,
      last.time > first.time
    {
      // Includes little time after the end, because the end was being watched for.
      let shares = ProcessorShares(from: first, to: last)
      report.shares = shares
      let greatest = max(shares.onCPU, shares.runnable, shares.blocked)
      report.processor = greatest == shares.blocked ? .blocked : greatest == shares.onCPU ? .onCPU : .runnable
    } else {
      report.processor = report.blockedIn == nil && !report.stack.isEmpty ? .onCPU : .blocked
    }
    if loop.wasStopped { report.processor = .stopped }
    if report.processor != .blocked {
      (report.blockedIn, report.waitsFor, report.waitsForName) = (nil, nil, nil)
    }
  }

  private func backlogReport(_ face: crl_face, _ slot: Int, _ since: Int64, _ now: Int64) -> HangReport {
    var report = report(face, slot, since, now)
    report.isBacklog = true
    (report.kind, report.code, report.postedFrom) = (nil, nil, nil)
    guard face.level >= CRL_RECORD.rawValue, face.posted > face.served else { return report }
    var sites: [UInt64: Int] = [:]
    for sequence in max(face.served + 1, face.posted > 4000 ? face.posted - 4000 : 1)...face.posted {
      guard let post = faces.post(sequence, of: slot) else { continue }
      let arrived = faces.nanoseconds(post.posted)
      // The post was first observed waiting slightly after it arrived.
      if arrived <= since, since - arrived < 200_000_000 { report.begin = min(report.begin, arrived) }
      sites[post.site & ~CRL_SITE_WAITS, default: 0] += 1
    }
    let frequent = sites.sorted { ($0.value, $1.key) > ($1.value, $0.key) }.prefix(5)
    report.sites = frequent.map { .init(site: $0.key == 0 ? nil : address($0.key), count: $0.value) }
    return report
  }

  private func threadName(_ face: crl_face, _ slot: Int) -> String {
    name(ofThread: face.thread, own: faces.name(slot))
  }

  /// The name of any thread of the process.
  package func name(ofThread thread: Int32) -> String {
    name(ofThread: thread, own: slot(ofThread: thread).map { faces.name($0) } ?? "")
  }

  /// The slot of a thread's loop.
  func slot(ofThread thread: Int32) -> Int? {
    (0..<faces.faceCount).first {
      let face = faces.face($0)
      return face.thread == thread && face.loop != 0 && face.flags & UInt8(CRL_FACE_ENDED) == 0
    }
  }

  private func name(ofThread thread: Int32, own: String) -> String {
    if thread == memory.process { return "main" }
    guard own.isEmpty else { return own }
    let kernel = ProcFile.read("/proc/\(memory.process)/task/\(thread)/comm").map { String($0.prefix { $0 != "\n" }) }
    return kernel ?? "\(thread)"
  }

  /// Symbolizable form of an address, with its program or library.
  func address(_ address: UInt64) -> CodeAddress {
    guard let image = memory.image(of: address) else { return CodeAddress(address: address) }
    let identity = image.buildID.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return CodeAddress(
      address: address, image: image.path, buildID: identity.isEmpty ? nil : identity, offset: address - image.base)
  }
}
