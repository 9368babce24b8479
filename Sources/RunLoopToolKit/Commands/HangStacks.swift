// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopInstruments

/// Samples the stacks of hanging threads while the records are read.
final class HangStacks {
  private let faces: FileFaces
  private let scout: HangScout
  private let user: UInt32
  private let process: Int32
  private var ended: [HangReport] = []

  init(of target: TargetProcess, _ file: RecordFile) {
    user = target.user
    process = target.number
    faces = FileFaces(file)
    var settings = HangJudge.Settings.standard
    settings.backlog = nil
    scout = HangScout(process: target.number, faces: faces, settings: settings)
  }

  /// Observes all loops as of the last read records.
  func look() {
    faces.recalibrate()
    for case .ended(let report) in scout.look(at: crl_monotonic_nanoseconds()) { ended.append(report) }
  }

  /// The observed hangs, symbolized.
  func hangs() -> [Timeline.Hang] {
    HangNames(ExternalSymbolizer(of: user), process: process).name(ended + scout.lasting).map { hang in
      Timeline.Hang(
        thread: hang.report.thread, threadName: hang.report.threadName, begin: hang.report.begin,
        end: hang.report.end, state: HangText.was(hang.report), stack: hang.stack.map { TimelineName($0) })
    }
  }
}
