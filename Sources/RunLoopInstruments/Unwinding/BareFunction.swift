// SPDX-License-Identifier: Apache-2.0

/// The possible starts of an x86-64 function without an unwind table entry.
///
/// Compilers omit the entry of a function that calls nothing that can throw.
struct BareFunction {
  /// The addresses at which the function may start.
  let range: ClosedRange<UInt64>
  /// The most likely starts, in the order of likelihood.
  let likely: [UInt64]

  /// The maximum length of a function.
  private static let longest: UInt64 = 1 << 16
  private static let mostLikely = 16

  /// Examines the code between the last described function and an address; fails if a table entry covers the address.
  init?(at address: UInt64, in memory: some ReadableMemory) {
    let lowest = address > BareFunction.longest ? address - BareFunction.longest : 0
    guard let place = memory.frameDescription(of: address), let last = try? FrameDescription(at: place, in: memory)
    else {
      range = lowest...address
      likely = []
      return
    }
    guard !last.code.contains(address) else { return nil }
    let end = last.code.upperBound
    let first = max(end > address ? address : end, lowest)
    range = first...address
    let code = memory.bytes(at: first, count: Int(address - first))
    // Functions are aligned. The end of the one before is a return or jump, followed by padding.
    var found: [UInt64] = []
    let (aligned, isOver) = first.addingReportingOverflow(15)
    if !isOver, first == end, aligned & ~15 <= address { found.append(aligned & ~15) }
    var start = address & ~15
    while start > first, found.count < BareFunction.mostLikely {
      let before = Int(start - first) - 1
      if before < code.count, [0xcc, 0xc3, 0x90, 0x00].contains(code[before]), !found.contains(start) {
        found.append(start)
      }
      guard start >= 16 else { break }
      start -= 16
    }
    likely = found
  }
}

/// The frame of an x86-64 function at one of its instructions, found without a table.
struct BareFrame {
  /// The number of bytes from the stack pointer to the return address.
  private(set) var size: UInt64 = 0
  /// The distance in bytes from each saved register down from the return address, by the registers' DWARF numbers.
  private(set) var saved: [Int: UInt64] = [:]

  /// The DWARF numbers of the first eight registers, in the order of their encoding.
  private static let numbers = [0, 2, 1, 3, 7, 6, 4, 5]

  /// Follows the first instructions of a function, up to an address.
  init(of function: UInt64, upTo address: UInt64, in memory: some ReadableMemory) {
    guard address > function else { return }
    var code = memory.bytes(at: function, count: Int(min(address - function, 64)))[...]
    // A landing pad for indirect calls.
    if code.starts(with: [0xf3, 0x0f, 0x1e, 0xfa]) { code = code.dropFirst(4) }
    while let first = code.first {
      if let (number, length) = BareFrame.register(code, 0x50) {
        size += 8
        saved[number] = size
        code = code.dropFirst(length)
      } else if code.starts(with: [0x48, 0x89, 0xe5]) {
        // mov rbp, rsp
        code = code.dropFirst(3)
      } else {
        // sub rsp, n; or add rsp, -128, which is shorter
        if first == 0x48, let (amount, _) = BareFrame.amount(code, 0xec) { size += amount }
        if code.starts(with: [0x48, 0x83, 0xc4, 0x80]) { size += 128 }
        return
      }
    }
  }

  /// Follows the last instructions of a function from an address; fails if others are before the return.
  init?(endingAt address: UInt64, in memory: some ReadableMemory) {
    var code = memory.bytes(at: address, count: 32)[...]
    var places: [(number: Int, place: UInt64)] = []
    if let (amount, length) = BareFrame.amount(code, 0xc4) {
      size = amount
      code = code.dropFirst(length)
    }
    while let (number, length) = BareFrame.register(code, 0x58) {
      places.append((number, size))
      size += 8
      code = code.dropFirst(length)
    }
    guard code.first == 0xc3 else { return nil }
    for (number, place) in places { saved[number] = size - place }
  }

  /// Decodes an instruction that pushes or pops a register: its DWARF number, and the instruction's length.
  private static func register(_ code: ArraySlice<UInt8>, _ operation: UInt8) -> (Int, Int)? {
    guard let first = code.first else { return nil }
    if operation...(operation + 7) ~= first { return (numbers[Int(first & 7)], 1) }
    guard first == 0x41, let second = code.dropFirst().first, operation...(operation + 7) ~= second else { return nil }
    return (8 + Int(second & 7), 2)
  }

  /// Decodes an instruction that moves the stack pointer by a positive amount, with the instruction's length.
  private static func amount(_ code: ArraySlice<UInt8>, _ form: UInt8) -> (UInt64, Int)? {
    let bytes = Array(code.prefix(7))
    guard bytes.count >= 4, bytes[0] == 0x48, bytes[2] == form else { return nil }
    if bytes[1] == 0x83, bytes[3] < 0x80 { return (UInt64(bytes[3]), 4) }
    guard bytes[1] == 0x81, bytes.count == 7, bytes[6] < 0x80 else { return nil }
    return (bytes.number(3, 4), 7)
  }
}
