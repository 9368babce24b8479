// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Testing

@testable import RunLoopKit

@Suite("The stack of a thread")
struct CallStackTests {
  @Test("the call stack is reported as addresses and as lines of the same frames, the caller's first")
  func bothForms() throws {
    let (addresses, symbols) = Stack.both()
    #expect((3...128).contains(addresses.count) && addresses.count == symbols.count)
    let lines = symbols.map { $0.split(separator: " ") }
    #expect(lines.map { String($0[0]) } == (0..<lines.count).map { "\($0)" })
    // The first frame made both calls; the others are unchanged.
    let told = lines.dropFirst().map { String($0[2]) }
    #expect(told == addresses.dropFirst().map { "0x" + padded(String($0.uintValue, radix: 16)) })
    #expect(lines[0][2].hasPrefix("0x") && lines[0][2].count == 18)
    // Symbol and offset, as in `name + 12`.
    #expect(lines.allSatisfy { $0.count == 6 && $0[4] == "+" && Int($0[5]) != nil })
  }

  @Test("a call stack frame of the program has its function's name, exported or not")
  func names() {
    let symbols = Stack.both().symbols
    #expect(symbols[0].contains("4both"))
    #expect(symbols[1].contains("5names"))
  }

  @Test("a deep call stack is reported up to 128 frames")
  func deep() {
    let symbols = Stack.deep(300)
    #expect(symbols.count == 128)
    #expect(symbols.dropFirst().allSatisfy { $0.contains("4deep") })
  }

  @Test("a file that is damaged or has no symbols names nothing and harms nothing")
  func damaged() throws {
    #expect(ElfSymbols(file: "/nowhere") == nil && ElfSymbols(file: "/proc/self/comm") == nil)
    #expect(ElfSymbols(Data()) == nil && ElfSymbols(Data(count: 64)) == nil)
    let file = Data(try smallFile())
    let found = try #require(ElfSymbols(file)?.function(at: 0x1010, base: 0x1000))
    #expect(found.name == "here" && found.address == 0x1010)
    #expect(ElfSymbols(file)?.function(at: 0x1014, base: 0x1000) == nil)
    for count in 0..<file.count { _ = ElfSymbols(file.prefix(count))?.function(at: 0x1010, base: 0x1000) }
    for index in 0..<file.count {
      var damaged = file
      for byte: UInt8 in [0, 1, 0x7F, 0xFF] {
        damaged[index] = byte
        _ = ElfSymbols(damaged)?.function(at: 0x1010, base: 0x1000)
      }
    }
  }

  /// Creates a file with two sections, one four-byte function, and its name.
  private func smallFile() throws -> [UInt8] {
    func bytes(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }
    var file: [UInt8] = [0x7F, 0x45, 0x4C, 0x46, 2, 1] + Array(repeating: 0, count: 10)
    file += bytes(UInt16(3)) + Array(repeating: 0, count: 22) + bytes(UInt64(64)) + Array(repeating: 0, count: 10)
    file += bytes(UInt16(64)) + bytes(UInt16(2)) + bytes(UInt16(0))
    func section(_ type: UInt32, _ offset: Int, _ size: Int, _ link: UInt32) -> [UInt8] {
      let start = bytes(UInt32(0)) + bytes(type) + Array(repeating: 0, count: 16)
      let extent = bytes(UInt64(offset)) + bytes(UInt64(size))
      return start + extent + bytes(link) + Array(repeating: 0, count: 20)
    }
    file += section(2, 192, 24, 1) + section(3, 216, 6, 0)
    try #require(file.count == 192)
    file += bytes(UInt32(1)) + [2, 0] + bytes(UInt16(1)) + bytes(UInt64(0x10)) + bytes(UInt64(4))
    return file + [0] + Array("here".utf8) + [0]
  }

  private func padded(_ digits: String) -> String { String(repeating: "0", count: 16 - digits.count) + digits }
}

private enum Stack {
  @inline(never)
  static func both() -> (addresses: [NSNumber], symbols: [String]) {
    (Thread.callStackReturnAddresses, Thread.callStackSymbols)
  }

  @inline(never)
  static func deep(_ depth: Int) -> [String] {
    // Not a tail call, which would leave no frame.
    let symbols = depth == 0 ? Thread.callStackSymbols : deep(depth - 1)
    return symbols.filter { !$0.isEmpty }
  }
}
