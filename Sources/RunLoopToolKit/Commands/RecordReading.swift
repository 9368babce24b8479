// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// Names what stands in records.
final class RecordNames {
  private let file: RecordFile
  private let symbolizer: Symbolizer

  init(_ file: RecordFile) {
    self.file = file
    symbolizer = Symbolizer(file.images, source: ExternalSymbolizer(of: file.owner))
  }

  /// Whether a record is of a call-out, which has code.
  private func isCallOut(_ record: crl_record) -> Bool { record.kind < CRL_KIND_HOST.rawValue }

  /// Asks for everything that stands in records at once.
  func prepare(_ records: [(slot: Int, record: crl_record)]) {
    symbolizer.prepare(
      functions: records.filter { isCallOut($0.record) && $0.record.code != 0 }.map(\.record.code),
      sites: records.map { site(of: $0.record, $0.slot) }.filter { $0 != 0 })
  }

  /// The post that a record is of.
  func post(of record: crl_record, _ slot: Int) -> crl_post? {
    record.kind <= CRL_KIND_JOB.rawValue ? file.post(record.item, of: slot) : nil
  }

  /// Where the work was posted, signalled, sent or added, or where a run was begun; 0: not known.
  private func site(of record: crl_record, _ slot: Int) -> UInt64 {
    if UInt32(record.kind) == CRL_KIND_RUN.rawValue || UInt32(record.kind) == CRL_KIND_HOST.rawValue {
      return record.code
    }
    if Int32(record.flags) & Int32(CRL_RECORD_CAUSED) != 0 { return record.item }
    // The highest bit says that the poster waits.
    return post(of: record, slot).map { $0.site & ~(1 << 63) } ?? 0
  }

  /// Where the work was posted from.
  func posted(_ record: crl_record, _ slot: Int) -> CodePlace? { symbolizer.place(.site, site(of: record, slot)) }

  /// The user's code; where a thunk hides it, the place of the post.
  func code(_ record: crl_record, _ slot: Int) -> CodePlace? {
    guard isCallOut(record) else { return nil }
    return symbolizer.place(.function, record.code) ?? posted(record, slot)
  }
}

extension RecordFile {
  /// The name of a slot's thread: its object's, `main` for the first, else the kernel's.
  func threadName(_ slot: Int, kernelName: (Int32) -> String?) -> String {
    let face = face(slot)
    if face.thread == process { return "main" }
    let name = name(slot)
    return name.isEmpty ? kernelName(face.thread) ?? "\(face.thread)" : name
  }
}
