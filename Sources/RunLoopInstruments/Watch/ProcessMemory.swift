// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopCore
import RunLoopLibC

/// Access to a process's memory.
package protocol ReadableMemory {
  /// Returns bytes from an address on, fewer if not all of them can be read.
  func bytes(at address: UInt64, count: Int) -> [UInt8]
  /// Returns whether an address is in executable memory.
  func isCode(_ address: UInt64) -> Bool
  /// Returns the start of the function that contains an address, or nil if it is unknown.
  func functionStart(of address: UInt64) -> UInt64?
  /// Returns the address of the unwind table entry for the function that contains an address, or nil if it is unknown.
  func frameDescription(of address: UInt64) -> UInt64?
  /// Returns the unwind rules at an address, or nil if there are none.
  func frameRules(at address: UInt64) -> FrameRules?
  /// The instruction set of the code.
  var instructions: InstructionSet { get }
  /// The bits of a return address that belong to the address; the others may contain a signature, as on arm64.
  var codeAddressMask: UInt64 { get }
}

extension ReadableMemory {
  package var instructions: InstructionSet { .native }
  package var codeAddressMask: UInt64 { crl_code_address_mask() }
  package func frameDescription(of address: UInt64) -> UInt64? { nil }
  package func frameRules(at address: UInt64) -> FrameRules? { FrameRules(at: address, in: self) }
}

extension ReadableMemory {
  func word(at address: UInt64) -> UInt64? {
    let found = bytes(at: address, count: 8)
    return found.count == 8 ? found.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } : nil
  }
}

/// A program or library loaded by a process.
package struct CodeImage: Sendable, Hashable {
  /// The difference between addresses in memory and in the file.
  package let base: UInt64
  package let start: UInt64
  package var end: UInt64
  package let path: String
  package let buildID: [UInt8]
  /// The address of the linker's function table for unwinding, or zero if there is none.
  let functionTable: UInt64

  /// The ending of a deleted file's path in the kernel's lists.
  package static let deletedMark = " (deleted)"
  /// The name of the library that the kernel maps into each process.
  package static let kernelLibrary = "[vdso]"
}

/// The memory of this or another process, read without affecting the process; must be used on a single thread.
package final class ProcessMemory: ReadableMemory {
  package let process: Int32
  private var code: [Range<UInt64>] = []
  private var known: [CodeImage] = []
  private var entries: [UInt64: FunctionEntry?] = [:]
  private var rules: [UInt64: FrameRules?] = [:]
  /// The maximum number of entries in each cache before it is emptied.
  private static let mostKnown = 20_000
  /// The memory as a file, opened if `process_vm_readv` is not permitted.
  private var file: OwnedDescriptor?
  private var refusal: SystemError?
  private var fileFailure: SystemError?

  package init(process: Int32) {
    self.process = process
    readMap()
  }

  /// The loaded programs and libraries.
  package var images: [CodeImage] { known }

  package func bytes(at address: UInt64, count: Int) -> [UInt8] {
    [UInt8](
      unsafeUninitializedCapacity: count,
      initializingWith: { buffer, filled in
        filled = buffer.baseAddress.map { max(0, read(address, $0, count)) } ?? 0
      })
  }

  /// The reason why the memory cannot be read, or nil if it can.
  package var problem: String? { refusal.flatMap { refusal in fileFailure.map { "\(refusal); \($0)" } } }

  private func read(_ address: UInt64, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
    if refusal == nil {
      let answer = crl_memory_read(process, address, buffer, count)
      guard answer < 0, [EPERM, ENOSYS, EACCES].contains(Int32(-answer)) else { return answer }
      refusal = SystemError(call: "process_vm_readv", number: Int32(-answer))
      let number = crl_memory_open(process)
      if number >= 0 {
        file = OwnedDescriptor(number)
      } else {
        fileFailure = SystemError(call: "open (/proc/\(process)/mem)", number: -number)
      }
    }
    guard let file else { return -1 }
    let answer = crl_memory_read_file(file.number, address, buffer, count)
    // On some systems the file can be opened but not read.
    if answer == -Int(EPERM) || answer == -Int(EACCES) {
      fileFailure = SystemError(call: "read (/proc/\(process)/mem)", number: Int32(-answer))
    }
    return answer
  }

  package func isCode(_ address: UInt64) -> Bool { code.contains { $0.contains(address) } }

  /// The image that contains an address.
  package func image(of address: UInt64) -> CodeImage? { known.first { $0.start <= address && address < $0.end } }

  package func functionStart(of address: UInt64) -> UInt64? { entry(of: address)?.start }
  package func frameDescription(of address: UInt64) -> UInt64? { entry(of: address)?.description }

  package func frameRules(at address: UInt64) -> FrameRules? {
    if let known = rules[address] { return known }
    if rules.count >= ProcessMemory.mostKnown { rules.removeAll() }
    let found = FrameRules(at: address, in: self)
    rules[address] = .some(found)
    return found
  }

  private func entry(of address: UInt64) -> FunctionEntry? {
    if let known = entries[address] { return known }
    if entries.count >= ProcessMemory.mostKnown { entries.removeAll() }
    let found = image(of: address).flatMap { FunctionEntry(of: address, $0.functionTable, in: self) }
    entries[address] = .some(found)
    return found
  }

  /// Reads the list of loaded images.
  package func readMap() {
    // Access may be permitted by now.
    if fileFailure != nil { (refusal, fileFailure, file) = (nil, nil, nil) }
    guard let text = ProcFile.read("/proc/\(process)/maps") else { return }
    code.removeAll()
    // The cached results may be out of date.
    entries.removeAll()
    rules.removeAll()
    var earlier = known
    known.removeAll()
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
      let ends = (fields.first ?? "").split(separator: "-").compactMap { UInt64($0, radix: 16) }
      guard fields.count >= 5, ends.count == 2, ends[0] < ends[1] else { continue }
      if fields[1].contains("x") { code.append(ends[0]..<ends[1]) }
      // The path is aligned with blanks, and may contain blanks.
      guard fields.count == 6, let slash = fields[5].firstIndex(where: { $0 != " " }) else { continue }
      let name = fields[5][slash...]
      // The kernel's library is a complete one, with tables, in memory only.
      guard name.first == "/" || name == CodeImage.kernelLibrary[...] else { continue }
      let path = String(name.hasSuffix(CodeImage.deletedMark) ? name.dropLast(CodeImage.deletedMark.count) : name)
      if let last = known.last, last.path == path {
        known[known.count - 1].end = ends[1]
      } else if UInt64(fields[2], radix: 16) == 0 {
        if let same = earlier.firstIndex(where: { $0.start == ends[0] && $0.path == path }) {
          known.append(earlier.remove(at: same))
        } else if let image = readImage(ends[0], ends[1], path) {
          known.append(image)
        }
      }
    }
  }

  /// Reads the headers of a program or library; returns nil if the file is neither.
  private func readImage(_ start: UInt64, _ end: UInt64, _ path: String) -> CodeImage? {
    let head = bytes(at: start, count: 64)
    guard head.count == 64, head.starts(with: [0x7f, 0x45, 0x4c, 0x46, 2, 1]) else { return nil }
    // An executable that is not position-independent has absolute addresses in its file.
    let base = head.number(16, 2) == 2 ? 0 : start
    let (offset, size, count) = (head.number(32, 8), Int(head.number(54, 2)), Int(head.number(56, 2)))
    guard size >= 56, count < 100 else { return nil }
    let table = bytes(at: start &+ offset, count: size * count)
    guard table.count == size * count else { return nil }
    var identity: [UInt8] = []
    var functionTable: UInt64 = 0
    for index in 0..<count {
      let place = base &+ table.number(index * size + 16, 8)
      switch table.number(index * size, 4) {
      case 4 where identity.isEmpty:
        identity = ProcessMemory.buildID(bytes(at: place, count: Int(min(table.number(index * size + 40, 8), 4096))))
      case 0x6474_e550: functionTable = place
      default: break
      }
    }
    return CodeImage(
      base: base, start: start, end: end, path: path, buildID: identity, functionTable: functionTable)
  }

  private static func buildID(_ notes: [UInt8]) -> [UInt8] {
    var place = 0
    while place + 12 <= notes.count {
      let (name, size) = (Int(notes.number(place, 4)), Int(notes.number(place + 4, 4)))
      let data = place + 12 + (name + 3) & ~3
      guard data + size <= notes.count else { return [] }
      if notes.number(place + 8, 4) == 3, name == 4, notes[(place + 12)..<(place + 15)].elementsEqual("GNU".utf8) {
        return Array(notes[data..<(data + min(size, 20))])
      }
      place = data + (size + 3) & ~3
    }
    return []
  }
}

/// An entry of the binary search table for unwinding.
private struct FunctionEntry {
  let start: UInt64
  /// The address of the function's entry in `.eh_frame`.
  let description: UInt64

  /// Searches a table whose entries are pairs of 32-bit offsets: a function's start and its description.
  init?(of address: UInt64, _ table: UInt64, in memory: ProcessMemory) {
    let head = memory.bytes(at: table, count: 12)
    // The only format that linkers write: signed 32-bit offsets from the table.
    guard table != 0, head.count == 12, head[0] == 1, head[2] == 0x03, head[3] == 0x3b else { return nil }
    func numbers(_ index: Int) -> [UInt64]? {
      let entry = memory.bytes(at: table &+ 12 &+ UInt64(8 * index), count: 8)
      guard entry.count == 8 else { return nil }
      return [0, 4].map { table &+ UInt64(bitPattern: Int64(Int32(truncatingIfNeeded: entry.number($0, 4)))) }
    }
    var (low, high) = (0, Int(head.number(8, 4)))
    while low < high {
      let middle = (low + high) / 2
      guard let entry = numbers(middle) else { return nil }
      if entry[0] <= address { low = middle + 1 } else { high = middle }
    }
    guard low > 0, let entry = numbers(low - 1) else { return nil }
    (start, description) = (entry[0], entry[1])
  }
}

extension [UInt8] {
  /// Reads a little-endian number at a place.
  func number(_ place: Int, _ size: Int) -> UInt64 {
    (0..<size).reduce(UInt64(0)) { $0 | UInt64(self[place + $1]) << UInt64(8 * $1) }
  }
}
