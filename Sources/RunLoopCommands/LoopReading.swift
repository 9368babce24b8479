// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopSymbols
import RunLoopTimeline

/// What a loop of a living process is doing.
struct LoopStatus {
  enum State: String {
    case idle
    case busy
    case hung
    case notRunning = "not-running"
  }

  struct CallOut {
    let kind: String
    let code: CodePlace?
    let since: Int64?
  }

  let thread: Int32
  let name: String
  let mode: String?
  var state: State
  let depth: Int
  let queued: Int
  var callOut: CallOut?
  let waits: UInt64
}

/// Looks at the loops of a process for a moment.
struct LoopReader {
  /// From when on a call-out is a hang, and how long a look takes that cannot tell otherwise.
  static let threshold: Int64 = 250_000_000

  let target: TargetProcess
  let file: RecordFile

  private struct Look {
    let face: crl_face
    let record: crl_record?
  }

  private func look() -> [Int: Look] {
    var found: [Int: Look] = [:]
    for slot in 0..<file.faceCount {
      let face = file.face(slot)
      guard face.thread != 0, face.loop != 0, face.flags & UInt8(CRL_FACE_ENDED) == 0 else { continue }
      let record = face.open == 0 || face.level < CRL_RECORD.rawValue ? nil : file.record(face.open, of: slot)
      found[slot] = Look(face: face, record: record?.kind == UInt8(CRL_KIND_SLEEP.rawValue) ? nil : record)
    }
    return found
  }

  /// The loops, by thread; a loop that neither sleeps nor says since when it is busy is looked at twice.
  func read() throws(RecordError) -> [LoopStatus] {
    try file.refresh()
    let first = look()
    let isClear = first.values.allSatisfy {
      !isBusy($0.face) || $0.record.map { age(of: $0) >= Self.threshold } ?? false
    }
    var second = first
    if !isClear {
      // So that what goes on meanwhile has a name.
      let hold = try? LevelHold(file, CRL_RECORD.rawValue)
      defer { hold?.release() }
      let end = crl_monotonic_nanoseconds() + Self.threshold + 10_000_000
      while crl_monotonic_nanoseconds() < end, target.isAlive {
        usleep(10_000)
        try file.refresh()
        second = look()
        // Everyone has slept or has gone on to something with a name: there is no hang to be found.
        if second.allSatisfy({ slot, look in first[slot].map { !isSame($0, look) && isNamed(look) } ?? true }) { break }
      }
    }
    let names = RecordNames(file)
    names.prepare(second.compactMap { slot, look in look.record.map { (slot, $0) } })
    return second.sorted { $0.value.face.thread < $1.value.face.thread }.map { slot, look in
      status(slot, look, before: first[slot], names)
    }
  }

  private func isBusy(_ face: crl_face) -> Bool { face.depth > 0 && face.flags & UInt8(CRL_FACE_SLEEPS) == 0 }

  private func isNamed(_ look: Look) -> Bool { !isBusy(look.face) || look.record != nil }

  private func age(of record: crl_record) -> Int64 {
    crl_monotonic_nanoseconds() - file.clock.nanoseconds(record.begin)
  }

  /// Whether a busy loop has done nothing between two looks that it would have noted.
  private func isSame(_ first: Look, _ second: Look) -> Bool {
    isBusy(first.face) && isBusy(second.face) && first.face.number == second.face.number
      && first.face.sleeps == second.face.sleeps && first.face.served == second.face.served
      && first.face.level == second.face.level
  }

  private func status(_ slot: Int, _ look: Look, before: Look?, _ names: RecordNames) -> LoopStatus {
    let face = look.face
    let name = file.threadName(slot) { target.kernelName(ofThread: $0) }
    var state: LoopStatus.State = face.depth == 0 ? .notRunning : isBusy(face) ? .busy : .idle
    var callOut: LoopStatus.CallOut?
    if state == .busy {
      let isOld = look.record.map { age(of: $0) >= Self.threshold }
      if isOld ?? before.map({ isSame($0, look) }) ?? false { state = .hung }
      if let record = look.record {
        callOut = .init(
          kind: KindName.of(record.kind), code: names.code(record, slot), since: file.clock.nanoseconds(record.begin))
      } else if face.kind != 0 {
        callOut = .init(kind: KindName.of(face.kind), code: nil, since: nil)
      }
    }
    let queued = face.posted >= face.served ? Int(face.posted - face.served) : 0
    return LoopStatus(
      thread: face.thread, name: name, mode: face.depth == 0 ? nil : file.mode(face.mode), state: state,
      depth: Int(face.depth), queued: queued, callOut: callOut, waits: face.waits)
  }
}
