// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopInstruments

/// What the loops of another process show, in its records.
final class FileFaces: LoopFaces {
  private let file: RecordFile
  private var clock: RecordClock

  init(_ file: RecordFile) {
    self.file = file
    clock = file.clock
  }

  /// Looks anew, if the records are a copy.
  func refresh() throws(RecordError) {
    try file.refresh()
    recalibrate()
  }

  /// Reads the clock anew, if others have read the records anew.
  func recalibrate() {
    // The process may have begun to record, and the longer the span is, the better is the clock.
    clock = file.clock
  }

  /// How many loops have no face.
  var unseenLoops: Int { file.unseenLoops }

  var faceCount: Int { file.faceCount }
  func face(_ slot: Int) -> crl_face { file.face(slot) }
  func record(_ number: UInt64, of slot: Int) -> crl_record? { file.record(number, of: slot) }
  func post(_ sequence: UInt64, of slot: Int) -> crl_post? { file.post(sequence, of: slot) }
  func name(_ slot: Int) -> String { file.name(slot) }
  func lateTimer(_ slot: Int) -> LateTimer? { file.lateTimer(slot) }
  func mode(_ index: UInt8) -> String? { file.mode(index) }

  func nanoseconds(_ ticks: UInt64) -> Int64 {
    // Ticks are of a record, and the clock was chosen before the first was there.
    if !clock.isKnown { recalibrate() }
    return clock.nanoseconds(ticks)
  }
}
