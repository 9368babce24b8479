// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC
import Synchronization

// In debug builds: says on the standard error that the main loop has hung for five seconds. RUNLOOP_INSTRUMENTS=off
// turns that off. It is called when the first loop is made.
@_cdecl("rli_records_are_made")
func recordsAreMade() {
  #if DEBUG
    MainHangNotice.begin()
  #endif
}

#if DEBUG
  enum MainHangNotice {
    private static let watch = Mutex<HangWatch?>(nil)

    static func begin() {
      guard Environment.value("RUNLOOP_INSTRUMENTS") != "off" else { return }
      watch.withLock { watch in
        guard watch == nil else { return }
        watch = HangWatch(.init(threshold: .seconds(5), backlog: nil)) { report in
          guard report.end == nil, report.thread == getpid() else { return }
          var text = MainHangNotice.text(report)
          text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
      }
    }

    static func text(_ report: HangReport) -> String {
      var lines = ["RunLoopKit: the main loop has hung for 5 s in \(report.kind ?? "a call-out")"]
      lines[0] += ", \(report.processor.rawValue)"
      if let call = report.blockedIn { lines[0] += " in \(call.call)(\(call.on ?? ""))" }
      if let holder = report.waitsForName { lines[0] += ", waits for \(holder)" }
      var tables: [String: SymbolTable] = [:]
      func name(_ address: CodeAddress) -> String? {
        guard let image = address.image, let offset = address.offset else { return nil }
        let table = tables[image] ?? SymbolTable(image)
        tables[image] = table
        return table.name(at: offset)
      }
      for address in report.stack {
        guard let name = name(address) else { continue }
        if name.contains("runLoopIsCallingOut") { break }
        lines.append("  at \(name)")
      }
      if let posted = report.postedFrom.flatMap(name) { lines.append("  posted from \(posted)") }
      lines.append("\"runloop hangs \(getpid())\" shows the lines. RUNLOOP_INSTRUMENTS=off turns this notice off.")
      return lines.joined(separator: "\n") + "\n"
    }
  }

  /// The functions of a program's file, which the dynamic linker does not know.
  private struct SymbolTable {
    private var symbols: [UInt8] = []
    private var names: [UInt8] = []

    init(_ path: String) {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { return }
      defer { close(file) }
      func bytes(_ offset: Int, _ count: Int) -> [UInt8]? {
        guard offset >= 0, count > 0, count < 1 << 30 else { return nil }
        let found = [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
          read = max(0, pread(file, buffer.baseAddress, count, offset))
        }
        return found.count == count ? found : nil
      }
      // The sections of an ELF file of 64 bits, of 64 bytes each; the second kind is a table of symbols.
      guard let header = bytes(0, 64), header.int(58, 2) == 64,
        let sections = bytes(header.int(40, 8), 64 * header.int(60, 2))
      else { return }
      func content(_ section: Int) -> [UInt8]? {
        guard (section + 1) * 64 <= sections.count else { return nil }
        return bytes(sections.int(section * 64 + 24, 8), sections.int(section * 64 + 32, 8))
      }
      for section in 0..<sections.count / 64 where sections.int(section * 64 + 4, 4) == 2 {
        guard let symbols = content(section), let names = content(sections.int(section * 64 + 40, 4)) else {
          continue
        }
        (self.symbols, self.names) = (symbols, names)
      }
    }

    /// The function that an address lies in; nil: none is known.
    func name(at offset: UInt64) -> String? {
      for place in stride(from: 0, to: symbols.count - 23, by: 24) where symbols[place + 4] & 15 == 2 {
        let start = UInt64(truncatingIfNeeded: symbols.int(place + 8, 8))
        let size = UInt64(truncatingIfNeeded: symbols.int(place + 16, 8))
        guard start <= offset, offset - start < size else { continue }
        let name = symbols.int(place, 4)
        guard name < names.count else { return nil }
        return SymbolTable.demangled(String(decoding: names[name...].prefix { $0 != 0 }, as: UTF8.self))
      }
      return nil
    }

    private static func demangled(_ symbol: String) -> String {
      guard let text = swift_demangle(symbol, UInt(symbol.utf8.count), nil, nil, 0) else { return symbol }
      defer { free(text) }
      return String(cString: text)
    }
  }

  @_silgen_name("swift_demangle")
  private func swift_demangle(
    _ name: UnsafePointer<CChar>, _ length: UInt, _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: UnsafeMutablePointer<UInt>?, _ flags: UInt32
  ) -> UnsafeMutablePointer<CChar>?

  extension [UInt8] {
    /// A little-endian number at a place.
    fileprivate func int(_ place: Int, _ size: Int) -> Int { Int(truncatingIfNeeded: number(place, size)) }
  }
#endif
