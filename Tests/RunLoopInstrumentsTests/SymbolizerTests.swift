// SPDX-License-Identifier: Apache-2.0

import RunLoopToolKit
import Testing

/// Records which addresses of which file were requested.
private final class Asked: FrameSource {
  private(set) var addresses: [String] = []

  func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]] {
    self.addresses += addresses.map { "\(path) \($0)" }
    return addresses.map { [CodeFrame(symbol: "function\($0)", file: "/File.c", line: 1)] }
  }

  func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame] { [] }
}

/// A program with a forwarder of 32 bytes, into which its closure was inlined after the first instructions.
private struct Inlined: FrameSource {
  static let closure = "$s6victim12hangDispatchyys6UInt32VFyyYbcfU_"

  func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]] {
    addresses.map { address in
      let outer = CodeFrame(symbol: "\(Inlined.closure)TA", file: nil, line: 0)
      let inner = CodeFrame(symbol: Inlined.closure, file: "/Program.swift", line: Int(address))
      switch address {
      case 16..<24: return [outer]
      case 24..<48: return [inner, outer]
      default: return [CodeFrame(symbol: Inlined.closure, file: "/Other.swift", line: 1)]
      }
    }
  }

  func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame] { [] }
}

@Suite("The names of addresses") struct SymbolizerTests {
  @Test("addresses of a file recorded twice are requested relative to the mapping that contains them")
  func twice() {
    let source = Asked()
    let images = [0x5000, 0x1000].map { LoadedImage(base: $0, end: $0 + 0x1000, buildID: [], path: "/bin/sh") }
    let symbolizer = Symbolizer(images, source: source)
    #expect(symbolizer.place(.function, 0x1010)?.function == "function16")
    #expect(symbolizer.place(.function, 0x5020)?.function == "function32")
    #expect(symbolizer.caller([0x1031])?.function == "function48")
    #expect(source.addresses.sorted() == ["/bin/sh 16", "/bin/sh 32", "/bin/sh 48"])
  }

  @Test("an address at the very beginning of a file, to which nothing returns, is harmless")
  func beginning() {
    let source = Asked()
    let symbolizer = Symbolizer([LoadedImage(base: 0x1000, end: 0x2000, buildID: [], path: "/bin/sh")], source: source)
    #expect(symbolizer.place(.site, 0x1000) != nil)
    #expect(symbolizer.caller([0x1000]) != nil)
    #expect(source.addresses.sorted() == Array(repeating: "/bin/sh \(UInt64.max)", count: 2))
  }

  @Test("the symbolizer ignores paths that are not regular files", arguments: ["/dev/null", "/tmp", "/nothing"])
  func noFile(path: String) {
    let source = Asked()
    let symbolizer = Symbolizer([LoadedImage(base: 0x1000, end: 0x2000, buildID: [], path: path)], source: source)
    #expect(symbolizer.place(.function, 0x1010)?.function.hasSuffix(" + 0x10") == true)
    #expect(source.addresses.isEmpty)
  }

  @Test("a closure inlined into its forwarder has the line of its first instruction")
  func inlined() {
    let images = [LoadedImage(base: 0x1000, end: 0x2000, buildID: [], path: "/bin/sh")]
    let symbolizer = Symbolizer(images, source: Inlined())
    let place = CodePlace(function: "closure #1 in hangDispatch(_:)", file: "/Program.swift", line: 24)
    #expect(symbolizer.place(.function, 0x1010) == place)
  }
}
