// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopInstruments

/// Observes a process repeatedly for `runloop top`.
@MainActor
final class TopReader {
  let target: TargetProcess
  private let file: RecordFile
  private let symbolizer: () -> Symbolizer
  private var namer: Symbolizer?
  private var tails: [Int: RecordTail] = [:]
  private var meters: [Int: (generation: UInt32, meter: LoopMeter)] = [:]
  private let begin = crl_monotonic_nanoseconds()
  private let faces: FileFaces
  /// Detects hangs with the same settings as `runloop hangs`.
  private let scout: HangScout
  /// The descriptions of hangs, by slot and beginning.
  private var hangNames: [Int: (begin: Int64, text: String)] = [:]

  init(_ target: TargetProcess, _ file: RecordFile) {
    self.target = target
    self.file = file
    faces = FileFaces(file)
    scout = HangScout(process: target.number, faces: faces, settings: .standard)
    symbolizer = { Symbolizer(file.images, source: ExternalSymbolizer(of: file.owner)) }
  }

  /// The contents of a row.
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

  /// Whether the display will not change without new activity.
  private(set) var isSettled = false
  private(set) var lost = 0

  /// Reads the current state of the loops.
  func read() throws(RecordError) -> [Loop] {
    try faces.refresh()
    let now = crl_monotonic_nanoseconds()
    _ = scout.look(at: now)
    var clock = file.clock
    var found: [Loop] = []
    isSettled = true
    for slot in 0..<file.faceCount {
      let face = file.face(slot)
      guard face.thread != 0, face.loop != 0, face.flags & UInt8(CRL_FACE_ENDED) == 0 else {
        tails[slot] = nil
        meters[slot] = nil
        continue
      }
      var meter = LoopMeter(since: begin)
      if let known = meters[slot], known.generation == face.generation { meter = known.meter }
      if slot < Int(CRL_RINGS) {
        let (ended, lost) = tails[slot, default: RecordTail(slot: slot)].read(file)
        // The clock is chosen before the first record.
        if !clock.isKnown { clock = file.clock }
        for (record, post) in ended { meter.add(record, post, clock) }
        // The numbers are untrusted data.
        self.lost = min(self.lost + lost, Int(RecordLayout.most))
      }
      meter.addSample(face.number &- face.sleeps, at: now)
      meter.forget(before: now)
      meters[slot] = (face.generation, meter)
      found.append(loop(slot, face, meter, clock, now))
    }
    return found.sorted { $0.thread < $1.thread }
  }

  /// Resumes after a pause, which does not count.
  func resume() { scout.resume(at: crl_monotonic_nanoseconds()) }

  private func loop(_ slot: Int, _ face: crl_face, _ meter: LoopMeter, _ clock: RecordClock, _ now: Int64) -> Loop {
    let isAsleep = face.flags & UInt8(CRL_FACE_SLEEPS) != 0
    let isQuiet = isAsleep || face.depth == 0
    let open = face.open == 0 ? nil : file.record(face.open, of: slot)
    var asleepSince: Int64?
    if isQuiet { asleepSince = begin }
    if isAsleep, let open, open.end == 0 { asleepSince = clock.nanoseconds(open.begin) }
    var state = face.depth == 0 ? "not running" : isAsleep ? "idle" : "busy"
    var callOut = "–"
    let hang = isQuiet ? nil : scout.hang(slot)
    if let hang {
      // The beginning of a hang is unknown if it precedes the first observation.
      state = "HUNG \(hang.isOlder == true ? ">" : "")\(Text.coarse(now - hang.begin))"
      callOut = name(of: hang, slot)
    } else if !isQuiet {
      if target.isStopped { state = "stopped" }
      if let open, UInt32(open.kind) < CRL_KIND_HOST.rawValue, open.end == 0 {
        callOut = "\(KindName.of(open.kind))  \(name(of: open, slot) ?? "")"
      } else if face.kind != 0 {
        callOut = KindName.of(face.kind)
      }
    }
    if !isQuiet || !meter.isSettled(at: now) { isSettled = false }
    let queued = face.posted >= face.served ? Int(face.posted - face.served) : 0
    return Loop(
      slot: slot, thread: face.thread, name: file.threadName(slot) { target.kernelName(ofThread: $0) }, state: state,
      isHung: hang != nil, mode: face.depth == 0 ? "–" : file.mode(face.mode).map(Timeline.shortened) ?? "–",
      rate: meter.rate, busy: Int((meter.busy(at: now, asleepSince: asleepSince) * 100).rounded()),
      queued: queued, delay: meter.delay99, callOut: callOut)
  }

  /// Describes the call-out of a hang and the state of its thread, once per hang.
  private func name(of hang: HangReport, _ slot: Int) -> String {
    if let known = hangNames[slot], known.begin == hang.begin { return known.text }
    let named = HangNames(ExternalSymbolizer(of: target.user), process: target.number).name([hang])[0]
    // The place comes last, because the end of a line that is too long is kept.
    let call = hang.blockedIn.map { " blocked in \($0.call)(\($0.on ?? ""))" } ?? ""
    let text = "\(named.kind ?? "")\(call)  \(named.code?.text ?? "")"
    hangNames[slot] = (hang.begin, text)
    return text
  }

  /// Returns the table by code of a loop.
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

  /// The images are known once the process records.
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
