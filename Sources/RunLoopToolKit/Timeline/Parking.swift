// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopTools
import RunLoopLibC

/// Waits for a process that does nothing.
///
/// Any thread, one at a time.
package final class Parking: @unchecked Sendable {
  // Sendable: neither reference changes; the memory is the process's, which the file keeps mapped, and the word in it
  // is written atomically.
  private let file: RecordFile
  private let word: UnsafeMutablePointer<UInt32>

  /// Nil: it cannot be waited for, as its records are not in a file that both have mapped.
  package init?(_ file: RecordFile) {
    guard let word = file.parkingWord else { return nil }
    self.file = file
    self.word = word
  }

  /// Whether no loop does anything.
  package var isQuiet: Bool {
    (0..<file.faceCount).allSatisfy { slot in
      let face = file.face(slot)
      let isGone = face.thread == 0 || face.loop == 0 || face.flags & UInt8(CRL_FACE_ENDED) != 0
      return isGone || face.depth == 0 || face.flags & UInt8(CRL_FACE_SLEEPS) != 0
    }
  }

  /// Waits until a loop of the process ends a sleep or begins to record, for a minute at most.
  ///
  /// The process wakes whoever waits, once, and neither has anything to do meanwhile.
  package func wait() {
    // With a truncated file no thread is woken.
    guard crlt_store(word, 1) != 0 else {
      usleep(1_000_000)
      return
    }
    // Whoever has not seen the word by now is seen awake.
    usleep(2000)
    if isQuiet { crlt_futex_wait(word, 1, 60_000) }
    _ = crlt_store(word, 0)
  }
}
