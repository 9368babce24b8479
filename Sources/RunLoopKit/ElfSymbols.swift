// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The functions in the symbol table of a program or library, which the dynamic linker does not read.
///
/// There are none if the file is damaged or is not a 64-bit ELF file.
struct ElfSymbols {
  private let file: Data
  /// Whether addresses in the file are relative to the address at which it is loaded.
  private let isRelocatable: Bool
  private let symbols: Range<Int>
  private let names: Range<Int>

  /// Maps a file into memory.
  init?(file path: String) {
    guard let file = try? Data(contentsOf: URL(filePath: path), options: .alwaysMapped) else { return nil }
    self.init(file)
  }

  init?(_ file: Data) {
    self.file = file
    let bytes = ElfBytes(file)
    // 64-bit class, little-endian.
    guard bytes.number(UInt32.self, at: 0) == 0x464C_457F, bytes.number(UInt16.self, at: 4) == 0x0102,
      let type = bytes.number(UInt16.self, at: 16), let start = bytes.number(UInt64.self, at: 40),
      let size = bytes.number(UInt16.self, at: 58), let count = bytes.number(UInt16.self, at: 60)
    else { return nil }
    isRelocatable = type == 3
    func section(_ index: UInt32) -> ElfSection? {
      guard index < count else { return nil }
      return ElfSection(bytes, at: start.addingReportingOverflow(UInt64(index) * UInt64(size)).partialValue)
    }
    // Type 2 is the table of all symbols, which links to the section of their names.
    guard let table = (0..<UInt32(count)).lazy.compactMap(section).first(where: { $0.type == 2 }),
      let names = section(table.link)
    else { return nil }
    symbols = table.contents
    self.names = names.contents
  }

  /// Returns the mangled name and start of the function that contains an address, for a file loaded at `base`.
  ///
  /// - Complexity: O(n), where n is the number of symbols in the file.
  func function(at address: UInt, base: UInt) -> (name: String, address: UInt)? {
    let (value, overflow) = UInt64(address).subtractingReportingOverflow(isRelocatable ? UInt64(base) : 0)
    guard !overflow else { return nil }
    return file.withUnsafeBytes { bytes in
      for entry in stride(from: symbols.lowerBound, to: symbols.upperBound - 23, by: 24) {
        let start = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: entry + 8, as: UInt64.self))
        let size = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: entry + 16, as: UInt64.self))
        // Type 2 is a function.
        guard value >= start, value - start < size, bytes[entry + 4] & 0xF == 2 else { continue }
        let name = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: entry, as: UInt32.self))
        return (self.name(at: Int(name)), address - UInt(value - start))
      }
      return nil
    }
  }

  private func name(at offset: Int) -> String {
    guard offset < names.count else { return "???" }
    return String(decoding: file[(names.lowerBound + offset)..<names.upperBound].prefix { $0 != 0 }, as: UTF8.self)
  }
}

/// A section of the file, described by its header.
private struct ElfSection {
  let type: UInt32
  let link: UInt32
  let contents: Range<Int>

  init?(_ bytes: ElfBytes, at offset: UInt64) {
    guard let offset = Int(exactly: offset), let type = bytes.number(UInt32.self, at: offset + 4),
      let start = bytes.number(UInt64.self, at: offset + 24), let size = bytes.number(UInt64.self, at: offset + 32),
      let link = bytes.number(UInt32.self, at: offset + 40), let start = Int(exactly: start),
      let size = Int(exactly: size), start <= bytes.count, size <= bytes.count - start
    else { return nil }
    self.type = type
    self.link = link
    contents = start..<start + size
  }
}

/// Access to the numbers in a file.
private struct ElfBytes {
  private let file: Data

  init(_ file: Data) { self.file = file }

  var count: Int { file.count }

  /// Returns the number at `offset`, or nil if it is beyond the end.
  func number<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number? {
    let size = MemoryLayout<Number>.size
    guard offset >= 0, offset <= file.count - size else { return nil }
    return file.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
  }
}
