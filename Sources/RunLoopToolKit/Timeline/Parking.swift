// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopToolKit
import RunLoopLibC

/// Waits for an idle process to become active; can be used from any thread, but only by one at a time.
package final class Parking: @unchecked Sendable {
  // Sendable: the references are immutable. The file keeps the process's memory mapped, and the word in it is written
  // atomically.
  private let file: RecordFile
  private let word: UnsafeMutablePointer<UInt32>

  /// Fails if the records are not in a shared file, so that waiting is not possible.
  package init?(_ file: RecordFile) {
    guard let word = file.parkingWord else { return nil }
    self.file = file
    self.word = word
  }

  /// Whether no loop is active.
  package var isQuiet: Bool {
    (0..<file.faceCount).allSatisfy { slot in
      let face = file.face(slot)
      let isGone = face.thread == 0 || face.loop == 0 || face.flags & UInt8(CRL_FACE_ENDED) != 0
      return isGone || face.depth == 0 || face.flags & UInt8(CRL_FACE_SLEEPS) != 0
    }
  }

  /// Waits until a loop of the process wakes or begins to record, for at most a minute.
  ///
  /// The process wakes the waiting thread once, without polling on either side.
  package func wait() {
    // If the file was truncated, the process cannot wake this thread.
    guard crlt_store(word, 1) != 0 else {
      usleep(1_000_000)
      return
    }
    // A loop that has not seen the word by now is visibly awake.
    usleep(2000)
    if isQuiet { crlt_futex_wait(word, 1, 60_000) }
    _ = crlt_store(word, 0)
  }
}
