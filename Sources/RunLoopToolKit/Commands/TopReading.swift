// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem

/// Looks at a process repeatedly, for `runloop top`.
@MainActor
final class TopReader {
  let target: TargetProcess
  private let file: RecordFile
  private let symbolizer: () -> Symbolizer
  private var namer: Symbolizer?
  private var tails: [Int: RecordTail] = [:]
  private var meters: [Int: (generation: UInt32, meter: LoopMeter)] = [:]
  private let begin = crl_monotonic_nanoseconds()
  /// What each loop was doing when that was seen first.
  private var standing: [Int: Standing] = [:]

  /// What changes when a loop does something, and since when it has not.
  private struct Standing {
    let generation: UInt32
    let number: UInt64
    let progress: UInt64
    let since: Int64

    func isSame(as other: Standing) -> Bool {
      generation == other.generation && number == other.number && progress == other.progress
    }
  }

  init(_ target: TargetProcess, _ file: RecordFile) {
    self.target = target
    self.file = file
    symbolizer = { Symbolizer(file.images, source: ExternalSymbolizer(of: file.owner)) }
  }

  /// What a row shows.
  struct Loop: Equatable {
    var slot: Int
    var thread: Int32
    var name: String
    var state: String
    var isHung: Bool
    var mode: String
    var rate: Int
    var busy: Int
    var queued: Int
    var delay: Int64?
    var callOut: String
  }

  /// A line of the table by code.
  struct Line: Equatable {
    var kind: String
    var count: Int
    var total: Int64
    var longest: Int64
    var code: String
  }

  /// Whether nothing will change by itself.
  private(set) var isSettled = false
  private(set) var lost = 0

  /// The loops as they are now.
  func read() throws(RecordError) -> [Loop] {
    try file.refresh()
    let now = crl_monotonic_nanoseconds()
    var clock = file.clock
    var found: [Loop] = []
    isSettled = true
    for slot in 0..<file.faceCount {
      let face = file.face(slot)
      guard face.thread != 0, face.loop != 0, face.flags & UInt8(CRL_FACE_ENDED) == 0 else {
        tails[slot] = nil
        standing[slot] = nil
        meters[slot] = nil
        continue
      }
      var meter = LoopMeter(since: begin)
      if let known = meters[slot], known.generation == face.generation { meter = known.meter }
      if slot < Int(CRL_RINGS) {
        let (ended, lost) = tails[slot, default: RecordTail(slot: slot)].read(file)
        // The clock was chosen before the first record was there.
        if !clock.isKnown { clock = file.clock }
        for (record, post) in ended { meter.add(record, post, clock) }
        // The numbers are the process's own claim.
        self.lost = min(self.lost + lost, Int(RecordLayout.most))
      }
      meter.addSample(face.number &- face.sleeps, at: now)
      meter.forget(before: now)
      meters[slot] = (face.generation, meter)
      found.append(loop(slot, face, meter, clock, now))
    }
    return found.sorted { $0.thread < $1.thread }
  }

  private func loop(_ slot: Int, _ face: crl_face, _ meter: LoopMeter, _ clock: RecordClock, _ now: Int64) -> Loop {
    let isAsleep = face.flags & UInt8(CRL_FACE_SLEEPS) != 0
    if isAsleep || face.depth == 0 { standing[slot] = nil }
    let open = face.open == 0 ? nil : file.record(face.open, of: slot)
    var asleepSince: Int64?
    if isAsleep || face.depth == 0 { asleepSince = begin }
    if isAsleep, let open, open.end == 0 { asleepSince = clock.nanoseconds(open.begin) }
    var state = face.depth == 0 ? "not running" : isAsleep ? "idle" : "busy"
    var isHung = false
    var callOut = "–"
    if face.depth > 0, !isAsleep, target.isStopped {
      state = "stopped"
      standing[slot] = nil
    } else if face.depth > 0, !isAsleep {
      let unchanged = now - noteStanding(slot, face, now)
      if let open, UInt32(open.kind) < CRL_KIND_HOST.rawValue, open.end == 0 {
        let age = now - clock.nanoseconds(open.begin)
        isHung = age >= LoopReader.threshold
        if isHung { state = "HUNG \(Text.coarse(age))" }
        callOut = "\(KindName.of(open.kind))  \(name(of: open, slot) ?? "")"
      } else if face.kind != 0 {
        callOut = KindName.of(face.kind)
      }
      // Nobody knows since when what had begun before the first look.
      if !isHung, unchanged >= LoopReader.threshold {
        isHung = true
        state = "HUNG >\(Text.coarse(unchanged))"
      }
    }
    let isQuiet = isAsleep || face.depth == 0
    if !isQuiet || !meter.isSettled(at: now) { isSettled = false }
    let queued = face.posted >= face.served ? Int(face.posted - face.served) : 0
    return Loop(
      slot: slot, thread: face.thread, name: file.threadName(slot) { target.kernelName(ofThread: $0) }, state: state,
      isHung: isHung, mode: face.depth == 0 ? "–" : file.mode(face.mode).map(Timeline.shortened) ?? "–",
      rate: meter.rate, busy: Int((meter.busy(at: now, asleepSince: asleepSince) * 100).rounded()),
      queued: queued, delay: meter.delay99, callOut: callOut)
  }

  /// Since when a loop that does not sleep has done nothing that can be seen.
  private func noteStanding(_ slot: Int, _ face: crl_face, _ now: Int64) -> Int64 {
    let seen = Standing(
      generation: face.generation, number: face.number,
      progress: face.sleeps &* 31 &+ face.served &* 17 &+ UInt64(face.depth), since: now)
    if let known = standing[slot], known.isSame(as: seen) { return known.since }
    standing[slot] = seen
    return now
  }

  /// The table by code of a loop.
  func lines(of slot: Int, most: Int) -> [Line] {
    guard let meter = meters[slot]?.meter else { return [] }
    return meter.sums().prefix(most).map { site, sum in
      let names = naming()
      let place =
        names?.place(.function, site.code) ?? names?.place(.site, meter.site(of: site))
      return Line(
        kind: KindName.of(site.kind), count: sum.count, total: sum.total, longest: sum.longest, code: place?.text ?? "–"
      )
    }
  }

  /// The images are known from when the process has begun to record.
  private func naming() -> Symbolizer? {
    if namer == nil, !file.images.isEmpty { namer = symbolizer() }
    return namer
  }

  private func name(of record: crl_record, _ slot: Int) -> String? {
    guard let names = naming() else { return nil }
    if let place = names.place(.function, record.code) { return place.text }
    let post = UInt32(record.kind) <= CRL_KIND_JOB.rawValue ? file.post(record.item, of: slot) : nil
    return post.flatMap { names.place(.site, $0.site & ~(1 << 63)) }?.text
  }
}
