// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC
import RunLoopInstruments

/// The state of a loop of a running process.
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
    /// Whether the beginning was not recorded, so that only the time of the first observation is known.
    let isSeenLater: Bool
  }

  let thread: Int32
  let name: String
  let mode: String?
  let state: State
  let depth: Int
  let queued: Int
  let callOut: CallOut?
  let waits: UInt64
  /// The library whose loop hosts this loop as a guest.
  let host: String?
  /// Whether the process was stopped by a signal or a debugger, in which case no loop hangs.
  let isStopped: Bool
  /// For a hanging loop, when it began to hang, whether it hung even earlier, and the state of its thread.
  let hang: (since: Int64, isOlder: Bool, was: String)?
}

/// Reads the current state of a process's loops.
struct LoopReader {
  let target: TargetProcess
  let file: RecordFile
  private let faces: FileFaces
  private let scout: HangScout

  init(target: TargetProcess, file: RecordFile) {
    (self.target, self.file) = (target, file)
    faces = FileFaces(file)
    scout = HangScout(process: target.number, faces: faces, settings: .standard)
  }

  private struct Look {
    let face: crl_face
    let record: crl_record?
    let time: Int64

    var isBusy: Bool { face.depth > 0 && face.flags & UInt8(CRL_FACE_SLEEPS) == 0 }
    var isNamed: Bool { !isBusy || record != nil || face.isOfHost }

    /// Whether a busy loop has shown no activity since another observation.
    func isSame(as other: Look) -> Bool {
      isBusy && other.isBusy && face.number == other.face.number && face.sleeps == other.face.sleeps
        && face.served == other.face.served && face.level == other.face.level
        && face.host_turns == other.face.host_turns
    }
  }

  /// Throws if no loop runs on a thread with this name.
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

  /// Observes all loops, and passes the observations to the scout.
  private func look() throws(RecordError) -> [Int: Look] {
    try faces.refresh()
    _ = scout.look(at: crl_monotonic_nanoseconds())
    var found: [Int: Look] = [:]
    for slot in 0..<file.faceCount {
      let face = file.face(slot)
      guard face.thread != 0, face.loop != 0, face.flags & UInt8(CRL_FACE_ENDED) == 0 else { continue }
      let record = face.open == 0 || face.level < CRL_RECORD.rawValue ? nil : file.record(face.open, of: slot)
      found[slot] = Look(
        face: face, record: record?.kind == UInt8(CRL_KIND_SLEEP.rawValue) ? nil : record,
        time: crl_monotonic_nanoseconds())
    }
    return found
  }

  /// Reads the loops, ordered by thread, and observes a busy loop until it makes progress or hangs.
  func read() throws(RecordError) -> [LoopStatus] {
    let first = try look()
    var last = first
    let isStopped = target.isStopped
    if !isStopped, first.values.contains(where: \.isBusy) {
      // Records the call-outs of loops that continue meanwhile.
      let hold = try? LevelHold(file, CRL_RECORD.rawValue)
      defer { hold?.release() }
      // A thread without a processor needs longer to show activity.
      let end = crl_monotonic_nanoseconds() + 4 * HangJudge.Settings.standard.threshold
      var isOver = false
      while !isOver, crl_monotonic_nanoseconds() < end, target.isAlive {
        usleep(10_000)
        last = try look()
        isOver = last.allSatisfy { slot, look in
          guard let before = first[slot] else { return true }
          return look.isSame(as: before) ? scout.hang(slot) != nil : look.isNamed
        }
      }
    }
    let names = RecordNames(file)
    names.prepare(last.compactMap { slot, look in look.record.map { (slot, $0) } })
    let hangs = named(last.keys.compactMap { scout.hang($0) })
    return last.sorted { $0.value.face.thread < $1.value.face.thread }.map { slot, look in
      status(slot, look, before: first[slot], names, hangs[look.face.thread], isStopped)
    }
  }

  private func named(_ reports: [HangReport]) -> [Int32: SymbolicatedHang] {
    guard !reports.isEmpty else { return [:] }
    let named = HangNames(ExternalSymbolizer(of: target.user), process: target.number).name(reports)
    return Dictionary(named.map { ($0.report.thread, $0) }) { first, _ in first }
  }

  private func status(
    _ slot: Int, _ look: Look, before: Look?, _ names: RecordNames, _ hang: SymbolicatedHang?, _ isStopped: Bool
  ) -> LoopStatus {
    let face = look.face
    var callOut: LoopStatus.CallOut?
    if look.isBusy, let record = look.record {
      callOut = .init(
        kind: KindName.of(record.kind), code: names.code(record, slot) ?? hang?.code,
        since: file.clock.nanoseconds(record.begin), isSeenLater: false)
    } else if look.isBusy, let kind = face.kind != 0 ? KindName.of(face.kind) : hang?.kind {
      // A call-out that began before recording is named by its stack.
      let seen = before.flatMap { look.isSame(as: $0) ? $0 : nil } ?? look
      callOut = .init(kind: kind, code: hang?.code, since: hang?.report.begin ?? seen.time, isSeenLater: true)
    }
    let state: LoopStatus.State = face.depth == 0 ? .notRunning : look.isBusy ? .busy : .idle
    return LoopStatus(
      thread: face.thread, name: file.threadName(slot) { target.kernelName(ofThread: $0) },
      mode: face.depth == 0 ? nil : file.mode(face.mode), state: look.isBusy && hang != nil ? .hung : state,
      depth: Int(face.depth), queued: face.posted >= face.served ? Int(face.posted - face.served) : 0,
      callOut: callOut, waits: face.waits, host: hostName(face.host), isStopped: isStopped,
      hang: hang.map { ($0.report.begin, $0.report.isOlder == true, HangText.does($0.report)) })
  }

  private func hostName(_ number: UInt32) -> String? {
    switch crl_host(rawValue: number) {
    case CRL_HOST_NONE: nil
    case CRL_HOST_CORE_FOUNDATION: "Core Foundation"
    case CRL_HOST_GLIB: "GLib"
    case CRL_HOST_LIBUV: "libuv"
    default: "program"
    }
  }
}
