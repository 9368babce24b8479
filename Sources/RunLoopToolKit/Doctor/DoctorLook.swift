// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopInstruments
import RunLoopLibC

/// Observes a process for some time, and collects the data for a diagnosis.
final class DoctorLook {
  let target: TargetProcess
  let file: RecordFile
  let scout: HangScout
  private(set) var summary: LookSummary
  /// The hangs at the end of the observation, and those that ended earlier.
  private(set) var lasting: [HangReport] = []
  private(set) var ended: [HangReport] = []
  /// The activity of each loop during the observation.
  private(set) var loops: [Int: Loop] = [:]
  /// The counts of items by kind and place at the beginning and end, or nil without an agent.
  private(set) var kept: (first: [KeptThing: Int], last: [KeptThing: Int])?
  private let faces: FileFaces

  struct Loop {
    let generation: UInt32
    let first: crl_face
    var last: crl_face
    var looks = 0
    /// The number of observations in which it did not sleep.
    var awake = 0
    var meter: LoopMeter
    var tail: RecordTail
  }

  struct KeptThing: Hashable {
    let thread: String
    let kind: String
    let code: UInt64
    let added: UInt64
  }

  init(_ target: TargetProcess) throws(RecordError) {
    self.target = target
    file = try target.openRecords()
    faces = FileFaces(file)
    scout = HangScout(process: target.number, faces: faces, settings: .standard, lateAfter: CRL_LATE)
    summary = LookSummary(at: crl_monotonic_nanoseconds())
  }

  /// Observes for a number of nanoseconds, until the process ends, or until interrupted.
  func look(for nanoseconds: Int64) throws(RecordError) {
    let hold = try LevelHold(file, CRL_RECORD.rawValue)
    defer { hold.release() }
    let interruption = Interruption()
    defer { interruption.end() }
    let permission = AgentConnection.permission(of: target)
    defer { withExtendedLifetime(permission) {} }
    let first = keptThings()
    // The process may not have replied for a while.
    summary = LookSummary(at: crl_monotonic_nanoseconds())
    let end = summary.begin + nanoseconds
    while !interruption.hasCome {
      let now = crl_monotonic_nanoseconds()
      summary.end = now
      summary.ending = target.ending
      guard now < end, summary.ending == .time else { break }
      do throws(RecordError) { try faces.refresh() } catch {
        summary.ending = target.ending
        if summary.ending == .time { throw error }
        break
      }
      for case .ended(let report) in scout.look(at: now) { ended.append(report) }
      lasting = scout.lasting
      summary.note(scout, unseen: file.unseenLoops)
      noteLoops(now)
      usleep(20_000)
    }
    if interruption.hasCome, summary.ending == .time { summary.ending = .interrupted }
    if summary.ending == .time, let first, let last = keptThings() { kept = (first, last) }
  }

  private func noteLoops(_ now: Int64) {
    for slot in 0..<file.faceCount {
      let face = file.face(slot)
      guard face.thread != 0, face.loop != 0, face.flags & UInt8(CRL_FACE_ENDED) == 0 else { continue }
      var loop =
        loops[slot].flatMap { $0.generation == face.generation ? $0 : nil }
        ?? Loop(
          generation: face.generation, first: face, last: face, meter: LoopMeter(since: summary.begin),
          tail: RecordTail(slot: slot))
      loop.last = face
      loop.looks += 1
      if face.depth > 0, face.flags & UInt8(CRL_FACE_SLEEPS) == 0 { loop.awake += 1 }
      if slot < Int(CRL_RINGS) {
        let clock = file.clock
        for (record, post) in loop.tail.read(file).ended where clock.nanoseconds(record.begin) >= summary.begin {
          loop.meter.add(record, post, clock)
        }
      }
      loops[slot] = loop
    }
  }

  private func keptThings() -> [KeptThing: Int]? {
    guard !target.isStopped, let answers = try? LoopAnswer.read("reasons", target, thread: nil) else { return nil }
    var counts: [KeptThing: Int] = [:]
    for answer in answers {
      for reason in answer.reasons {
        let thing = KeptThing(
          thread: answer.name, kind: reason.kind, code: reason.code, added: reason.added.first ?? 0)
        counts[thing, default: 0] += 1
      }
    }
    return counts
  }

  /// The duration of the observation, in seconds.
  var seconds: Double { max(0.001, Double(summary.end - summary.begin) / 1e9) }
}
