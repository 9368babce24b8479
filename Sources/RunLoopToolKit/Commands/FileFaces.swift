// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopInstruments

/// The published state of another process's loops, read from its records.
final class FileFaces: LoopFaces {
  private let file: RecordFile
  private var clock: RecordClock

  init(_ file: RecordFile) {
    self.file = file
    clock = file.clock
  }

  /// Rereads the records if they are a copy.
  func refresh() throws(RecordError) {
    try file.refresh()
    recalibrate()
  }

  /// Rereads the clock after the records were refreshed by other code.
  func recalibrate() {
    // The process may have started to record, and a longer span makes the clock more accurate.
    clock = file.clock
  }

  /// The number of loops without a face.
  var unseenLoops: Int { file.unseenLoops }

  var faceCount: Int { file.faceCount }
  func face(_ slot: Int) -> crl_face { file.face(slot) }
  func record(_ number: UInt64, of slot: Int) -> crl_record? { file.record(number, of: slot) }
  func post(_ sequence: UInt64, of slot: Int) -> crl_post? { file.post(sequence, of: slot) }
  func name(_ slot: Int) -> String { file.name(slot) }
  func lateService(_ slot: Int) -> LateService? { file.lateService(slot) }
  func mode(_ index: UInt8) -> String? { file.mode(index) }

  func nanoseconds(_ ticks: UInt64) -> Int64 {
    // Ticks come from a record, and the clock was chosen before the first one.
    if !clock.isKnown { recalibrate() }
    return clock.nanoseconds(ticks)
  }
}
