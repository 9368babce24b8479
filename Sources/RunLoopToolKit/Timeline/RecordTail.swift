// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder

/// Reads the records of a loop as they are completed, each of them once.
package struct RecordTail {
  private let slot: Int
  private var generation: UInt32 = 0
  private var last: UInt64 = 0
  private var open: [UInt64] = []

  package init(slot: Int) { self.slot = slot }

  /// Returns the records completed since the last call, with their posts, and how many were overwritten meanwhile.
  package mutating func read(_ file: RecordFile) -> (ended: [(record: crl_record, post: crl_post?)], lost: Int) {
    let face = file.face(slot)
    var ended: [(record: crl_record, post: crl_post?)] = []
    var lost = 0
    if face.generation != generation {
      generation = face.generation
      last = face.number
      open = face.open == 0 ? [] : [face.open]
      return ([], 0)
    }
    open = open.filter { number in
      guard let record = file.record(number, of: slot) else { return false }
      if record.end != 0 { ended.append((record, post(of: record, file))) }
      return record.end == 0
    }
    let kept = UInt64(CRL_RECORDS) - 1
    let oldest = face.number > kept ? face.number - kept : 1
    if last + 1 < oldest {
      lost = Int(oldest - last - 1)
      last = oldest - 1
    }
    while last < face.number {
      let number = last + 1
      guard let record = file.record(number, of: slot), record.begin != 0 else {
        // The newest record may not have been written yet.
        if number == face.number { break }
        lost += 1
        last = number
        continue
      }
      if record.end == 0 { open.append(number) } else { ended.append((record, post(of: record, file))) }
      last = number
    }
    return (ended, lost)
  }

  private func post(of record: crl_record, _ file: RecordFile) -> crl_post? {
    UInt32(record.kind) <= CRL_KIND_JOB.rawValue ? file.post(record.item, of: slot) : nil
  }
}
