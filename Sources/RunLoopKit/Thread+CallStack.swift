// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
public import Foundation
public import RunLoopThreads

// The stack of the calling thread, as found by the C library.
extension RunLoopThreads.Thread {
  /// The return addresses of up to 128 frames of the calling thread, starting with the caller's.
  ///
  /// The corresponding Foundation property is `callStackReturnAddresses`.
  public class var callStackReturnAddresses: [NSNumber] {
    // The frame of this function is omitted.
    @inline(never) get {
      var addresses: [UnsafeMutableRawPointer?] = Array(repeating: nil, count: Int(RLK_STACK_LIMIT))
      let count = rlk_stack(&addresses)
      return addresses.prefix(Int(count)).map { NSNumber(value: UInt(bitPattern: $0)) }
    }
  }

  /// Descriptions of up to 128 frames of the calling thread, starting with the caller's.
  ///
  /// Each line contains the number, the file, the return address, and the mangled symbol that contains it or, if there
  /// is none, the position in the file. Use `swift demangle` to make the symbols readable; stripped programs have none.
  /// The property reads the program's files, and is for diagnostics only. The corresponding Foundation property is
  /// `callStackSymbols`.
  public class var callStackSymbols: [String] {
    @inline(never) get {
      var addresses: [UnsafeMutableRawPointer?] = Array(repeating: nil, count: Int(RLK_STACK_LIMIT))
      let count = rlk_stack(&addresses)
      var frames = FrameNames()
      return addresses.prefix(Int(count)).enumerated().map { frames.line($0.offset, UInt(bitPattern: $0.element)) }
    }
  }
}

/// Names the frames of one stack, reading the symbols of each file once.
private struct FrameNames {
  private var symbols: [UInt: ElfSymbols] = [:]

  mutating func line(_ number: Int, _ address: UInt) -> String {
    let (file, symbol, start) = name(address)
    let digits = String(address, radix: 16)
    let location = "0x" + String(repeating: "0", count: 16 - digits.count) + digits
    return "\(padded("\(number)", to: 3)) \(padded(file, to: 35)) \(location) \(symbol) + \(address - start)"
  }

  private mutating func name(_ address: UInt) -> (file: String, symbol: String, start: UInt) {
    var place = rlk_place()
    // A return address is the end of the call, which for a function's last instruction is in the next function.
    guard address > 0, rlk_place_find(address - 1, &place) != 0 else { return ("???", "???", 0) }
    let file = String(String(cString: place.name).split(separator: "/").last ?? "???")
    if let symbol = place.symbol { return (file, String(cString: symbol), place.symbol_address) }
    if symbols[place.base] == nil { symbols[place.base] = ElfSymbols(file: String(cString: place.path)) }
    guard let found = symbols[place.base]?.function(at: address - 1, base: place.base) else {
      return (file, file, place.base)
    }
    return (file, found.name, found.address)
  }

  private func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
