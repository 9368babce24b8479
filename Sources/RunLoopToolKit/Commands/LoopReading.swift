// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC
import RunLoopInstruments

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
    let since: Int64
    /// Whether nobody has noted its beginning, so that it is known only since when it was seen.
    let isSeenLater: Bool
  }

  let thread: Int32
  let name: String
  let mode: String?
  var state: State
  let depth: Int
  let queued: Int
  var callOut: CallOut?
  let waits: UInt64
  /// Whether a signal or a debugger has stopped the process: then no loop hangs.
  var isStopped = false
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
    let time: Int64
    /// Of a busy loop, what its thread has done so far and whether it can run.
    let clock: ThreadClock?
    let isRunnable: Bool
  }

  /// Throws if no loop is on a thread of a name.
  static func require(_ thread: String, in file: RecordFile, of target: TargetProcess) throws(RecordError) {
    try file.refresh()
    let isThere = (0..<file.faceCount).contains { slot in
      let face = file.face(slot)
      return face.thread != 0 && face.loop != 0 && face.flags & UInt8(CRL_FACE_ENDED) == 0
        && file.threadName(slot) { target.kernelName(ofThread: $0) } == thread
    }
    guard !isThere else { return }
    let unseen = file.unseenLoops
    throw RecordError(
      "process \(target.number) has no run loop on a thread named \"\(thread)\""
        + (unseen > 0 ? ", as far as can be seen: \(unseen) loops have no room to be seen" : ""))
  }

  private func look() -> [Int: Look] {
    var found: [Int: Look] = [:]
    for slot in 0..<file.faceCount {
      let face = file.face(slot)
      guard face.thread != 0, face.loop != 0, face.flags & UInt8(CRL_FACE_ENDED) == 0 else { continue }
      let record = face.open == 0 || face.level < CRL_RECORD.rawValue ? nil : file.record(face.open, of: slot)
      let now = crl_monotonic_nanoseconds()
      let isBusy = isBusy(face)
      found[slot] = Look(
        face: face, record: record?.kind == UInt8(CRL_KIND_SLEEP.rawValue) ? nil : record, time: now,
        clock: isBusy ? ThreadClock(thread: face.thread, of: target.number, at: now) : nil,
        isRunnable: isBusy && ThreadState(thread: face.thread, of: target.number) == .runs)
    }
    return found
  }

  /// The loops, by thread; a loop that neither sleeps nor says since when it is busy is looked at twice.
  func read() throws(RecordError) -> [LoopStatus] {
    try file.refresh()
    let first = look()
    var second = first
    let isStopped = target.isStopped
    if !isStopped, !first.values.allSatisfy({ isClear($0, since: nil) }) {
      // So that what goes on meanwhile has a name.
      let hold = try? LevelHold(file, CRL_RECORD.rawValue)
      defer { hold?.release() }
      let begin = crl_monotonic_nanoseconds()
      repeat {
        usleep(10_000)
        try file.refresh()
        second = look()
        // Everyone has slept, has gone on to something with a name, or hangs.
        let isOver = second.allSatisfy { slot, look in
          guard let before = first[slot] else { return true }
          return isSame(before, look) ? isClear(look, since: before) : isNamed(look)
        }
        if isOver { break }
        // A thread that gets no processor needs longer to show what it does.
      } while crl_monotonic_nanoseconds() < begin + 4 * Self.threshold && target.isAlive
    }
    let names = RecordNames(file)
    names.prepare(second.compactMap { slot, look in look.record.map { (slot, $0) } })
    return second.sorted { $0.value.face.thread < $1.value.face.thread }.map { slot, look in
      status(slot, look, before: first[slot], names, isStopped)
    }
  }

  private func isBusy(_ face: crl_face) -> Bool { face.depth > 0 && face.flags & UInt8(CRL_FACE_SLEEPS) == 0 }

  private func isNamed(_ look: Look) -> Bool { !isBusy(look.face) || look.record != nil }

  /// Whether a busy loop has done nothing between two looks that it would have noted.
  private func isSame(_ first: Look, _ second: Look) -> Bool {
    isBusy(first.face) && isBusy(second.face) && first.face.number == second.face.number
      && first.face.sleeps == second.face.sleeps && first.face.served == second.face.served
      && first.face.level == second.face.level
  }

  /// Whether it can be told what a loop does.
  private func isClear(_ look: Look, since first: Look?) -> Bool { !isBusy(look.face) || isHung(look, since: first) }

  /// Whether a call-out has gone on for the threshold, apart from the time in which others had the processor.
  private func isHung(_ look: Look, since first: Look?) -> Bool {
    // Of the time before the first look nobody knows what a thread has got that could run.
    var lasted: Int64 = 0
    let known = first.flatMap { isSame($0, look) ? $0 : nil }
    if let record = look.record, !(known ?? look).isRunnable {
      lasted = (known ?? look).time - file.clock.nanoseconds(record.begin)
    }
    if let known {
      lasted += look.time - known.time
      if let clock = look.clock, let before = known.clock {
        lasted -= clock.starvation(since: before, isRunnable: look.isRunnable)
      }
    }
    return lasted >= Self.threshold
  }

  private func status(
    _ slot: Int, _ look: Look, before: Look?, _ names: RecordNames, _ isStopped: Bool
  ) -> LoopStatus {
    let face = look.face
    let name = file.threadName(slot) { target.kernelName(ofThread: $0) }
    var state: LoopStatus.State = face.depth == 0 ? .notRunning : isBusy(face) ? .busy : .idle
    var callOut: LoopStatus.CallOut?
    if state == .busy {
      if !isStopped, isHung(look, since: before) { state = .hung }
      if let record = look.record {
        callOut = .init(
          kind: KindName.of(record.kind), code: names.code(record, slot), since: file.clock.nanoseconds(record.begin),
          isSeenLater: false)
      } else if face.kind != 0 {
        let seen = before.flatMap { isSame($0, look) ? $0 : nil } ?? look
        callOut = .init(kind: KindName.of(face.kind), code: nil, since: seen.time, isSeenLater: true)
      }
    }
    let queued = face.posted >= face.served ? Int(face.posted - face.served) : 0
    return LoopStatus(
      thread: face.thread, name: name, mode: face.depth == 0 ? nil : file.mode(face.mode), state: state,
      depth: Int(face.depth), queued: queued, callOut: callOut, waits: face.waits,
      isStopped: isStopped)
  }
}
