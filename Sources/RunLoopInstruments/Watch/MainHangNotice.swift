// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopLibC
import Synchronization

// In debug builds, reports on standard error when the main loop has hung for five seconds. `RUNLOOP_INSTRUMENTS=off`
// disables this. Called when the first loop is created.
@_cdecl("rli_records_are_made")
func recordsAreMade() {
  #if DEBUG
    MainHangNotice.begin()
  #endif
}

#if DEBUG
  enum MainHangNotice {
    /// The watch and the process that owns its thread; a forked child creates its own.
    private static let watch = Mutex<(watch: HangWatch, process: Int32)?>(nil)

    static func begin() {
      guard Environment.value("RUNLOOP_INSTRUMENTS") != "off" else { return }
      watch.withLock { watch in
        guard watch?.process != getpid() else { return }
        let made = HangWatch(.init(threshold: .seconds(5), backlog: nil)) { report in
          guard report.end == nil, report.thread == getpid() else { return }
          // A report of the program may fork, this one does not.
          crl_fork_prevent()
          var text = MainHangNotice.text(report)
          crl_fork_allow()
          text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
        watch = (made, getpid())
      }
    }

    private static func kind(_ report: HangReport) -> String {
      report.kind == CallOutName.host ? "an item of the loop that serves it" : report.kind ?? "a call-out"
    }

    static func text(_ report: HangReport) -> String {
      var lines = ["RunLoopKit: the main loop has hung for 5 s in \(kind(report))"]
      lines[0] += ", \(report.processor.rawValue)"
      if let call = report.blockedIn { lines[0] += " in \(call.call)(\(call.on ?? ""))" }
      if let holder = report.waitsForName {
        lines[0] += ", waits for \(report.waitsFor == report.thread ? "itself" : holder)"
      }
      // All but the innermost are return addresses, which may already belong to the next function.
      var places = report.stack.enumerated().map { index, address in Place(address, isReturn: index > 0) }
      places += report.postedFrom.map { [Place($0, isReturn: true)] } ?? []
      var names: [Place: String] = [:]
      for (image, places) in Dictionary(grouping: places, by: \.image) {
        for (offset, name) in SymbolTable.names(of: Set(places.map(\.offset)), in: image) {
          names[Place(image: image, offset: offset)] = name
        }
      }
      for name in places.prefix(report.stack.count).compactMap({ names[$0] }) {
        if name.contains("runLoopIsCallingOut") || CallOutName.runsHost(name) { break }
        lines.append("  at \(name)")
      }
      if report.postedFrom != nil, let posted = places.last.flatMap({ names[$0] }) {
        lines.append("  posted from \(posted)")
      }
      lines.append("\"runloop hangs \(getpid())\" shows the lines. RUNLOOP_INSTRUMENTS=off turns this notice off.")
      return lines.joined(separator: "\n") + "\n"
    }
  }

  /// A location in a program's file.
  private struct Place: Hashable {
    let image: String
    let offset: UInt64

    init(image: String, offset: UInt64) { (self.image, self.offset) = (image, offset) }

    init(_ address: CodeAddress, isReturn: Bool) {
      self.init(image: address.image ?? "", offset: (address.offset ?? 0) &- (isReturn ? 1 : 0))
    }
  }

  /// Reads the symbol table of a program's file, which the dynamic linker does not search.
  private enum SymbolTable {
    /// Finds the functions that contain offsets, in one pass over the table.
    static func names(of offsets: Set<UInt64>, in path: String) -> [UInt64: String] {
      // The file of the running program may have been replaced.
      let program = ProcFile.link("/proc/self/exe") ?? ""
      let isProgram = program == path || program == path + CodeImage.deletedMark
      let file = open(isProgram ? "/proc/self/exe" : path, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { return [:] }
      defer { close(file) }
      func bytes(_ offset: Int, _ count: Int) -> [UInt8]? {
        guard offset >= 0, count > 0, count < 1 << 30 else { return nil }
        let found = [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
          read = max(0, pread(file, buffer.baseAddress, count, offset))
        }
        return found.count == count ? found : nil
      }
      // The section headers of a 64-bit ELF file have 64 bytes each; type 2 is a symbol table.
      guard let header = bytes(0, 64), header.int(58, 2) == 64,
        let sections = bytes(header.int(40, 8), 64 * header.int(60, 2))
      else { return [:] }
      func content(_ section: Int) -> [UInt8]? {
        guard (section + 1) * 64 <= sections.count else { return nil }
        return bytes(sections.int(section * 64 + 24, 8), sections.int(section * 64 + 32, 8))
      }
      var found: [UInt64: String] = [:]
      for section in 0..<sections.count / 64 where sections.int(section * 64 + 4, 4) == 2 {
        guard let symbols = content(section), let names = content(sections.int(section * 64 + 40, 4)) else { continue }
        for (offset, name) in SymbolTable.names(of: offsets.sorted(), symbols) where name < names.count {
          found[offset] = demangled(String(decoding: names[name...].prefix { $0 != 0 }, as: UTF8.self))
        }
      }
      return found
    }

    /// Finds the name offsets of the functions that contain offsets; each symbol has 24 bytes.
    private static func names(of offsets: [UInt64], _ symbols: [UInt8]) -> [UInt64: Int] {
      var found: [UInt64: Int] = [:]
      // Uses unsafe access, because debug builds check and count every array access, for millions of bytes.
      symbols.withUnsafeBytes { symbols in
        // Type 2 is a function.
        for place in stride(from: 0, to: symbols.count - 23, by: 24) where symbols[place + 4] & 15 == 2 {
          let start = symbols.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self)
          let size = symbols.loadUnaligned(fromByteOffset: place + 16, as: UInt64.self)
          var index = firstIndex(of: start, in: offsets)
          while index < offsets.count, offsets[index] - start < size {
            found[offsets[index]] = Int(symbols.loadUnaligned(fromByteOffset: place, as: UInt32.self))
            index += 1
          }
        }
      }
      return found
    }

    /// Returns the index of the first offset at or after a place.
    private static func firstIndex(of start: UInt64, in offsets: [UInt64]) -> Int {
      var (low, high) = (0, offsets.count)
      while low < high {
        let middle = (low + high) / 2
        if offsets[middle] < start { low = middle + 1 } else { high = middle }
      }
      return low
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
    /// Reads a little-endian number at a place.
    fileprivate func int(_ place: Int, _ size: Int) -> Int { Int(truncatingIfNeeded: number(place, size)) }
  }
#endif
