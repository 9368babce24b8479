// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// Symbolizes the addresses in records.
final class RecordNames {
  private let file: RecordFile
  private let symbolizer: Symbolizer

  init(_ file: RecordFile) {
    self.file = file
    symbolizer = Symbolizer(file.images, source: ExternalSymbolizer(of: file.owner))
  }

  /// Returns whether a record describes a call-out, which has code.
  private func isCallOut(_ record: crl_record) -> Bool { record.kind < CRL_KIND_HOST.rawValue }

  /// Looks up all addresses of several records at once.
  func prepare(_ records: [(slot: Int, record: crl_record)]) {
    symbolizer.prepare(
      functions: records.filter { isCallOut($0.record) && $0.record.code != 0 }.map(\.record.code),
      sites: records.map { site(of: $0.record, $0.slot) }.filter { $0 != 0 })
  }

  /// Returns the post that a record belongs to.
  func post(of record: crl_record, _ slot: Int) -> crl_post? {
    record.kind <= CRL_KIND_JOB.rawValue ? file.post(record.item, of: slot) : nil
  }

  /// Returns the place that posted, signaled, sent or added the work or began the run, or zero if unknown.
  private func site(of record: crl_record, _ slot: Int) -> UInt64 {
    if UInt32(record.kind) == CRL_KIND_RUN.rawValue || UInt32(record.kind) == CRL_KIND_HOST.rawValue {
      return record.code
    }
    if Int32(record.flags) & Int32(CRL_RECORD_CAUSED) != 0 { return record.item }
    // The highest bit means that the poster waits.
    return post(of: record, slot).map { $0.site & ~(1 << 63) } ?? 0
  }

  /// Returns the place that posted the work.
  func posted(_ record: crl_record, _ slot: Int) -> CodePlace? { symbolizer.place(.site, site(of: record, slot)) }

  /// Returns the user's code, or the place that posted it if a thunk hides the code.
  func code(_ record: crl_record, _ slot: Int) -> CodePlace? {
    guard isCallOut(record) else { return nil }
    return symbolizer.place(.function, record.code) ?? posted(record, slot)
  }
}

extension RecordFile {
  /// Returns the name of a slot's thread: its object's name, `main` for the first thread, or the kernel's name.
  func threadName(_ slot: Int, kernelName: (Int32) -> String?) -> String {
    let face = face(slot)
    if face.thread == process { return "main" }
    let name = name(slot)
    return name.isEmpty ? kernelName(face.thread) ?? "\(face.thread)" : name
  }
}
