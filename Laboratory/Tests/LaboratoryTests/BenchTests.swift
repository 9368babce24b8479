// SPDX-License-Identifier: Apache-2.0

import CLaboratory
import Glibc
import RunLoopCore
import Testing

import struct Foundation.Data
import func Foundation.NSTemporaryDirectory
import struct Foundation.URL
import class RunLoopCore.RunLoop
import class RunLoopCore.Timer

@testable import LaboratoryKit

@Suite("The bench of the laboratory")
struct BenchTests {
  @Test("the call-outs on a stack are the loop's functions, without parameters and prefixes")
  func callOutNames() {
    let stack = [
      "closure #1 in run()", "specialized runLoopIsCallingOutToATimer(_:_:)", "RunLoop.run(_:for:)",
      "runLoopIsCallingOutToABlock(_:)", "RunLoop.run(mode:for:)", "main",
    ]
    #expect(callOuts(in: stack) == "runLoopIsCallingOutToATimer < runLoopIsCallingOutToABlock")
    #expect(Array(loopPart(of: stack)) == Array(stack[1...4]))
    #expect(callOuts(in: ["main"]) == "none")
    #expect(loopPart(of: ["main"]).isEmpty)
  }

  @Test("a stack begins with the function that takes it and its caller")
  func ownStack() {
    // The optimizer may have cloned the function.
    #expect(stack().prefix(2).last?.contains("BenchTests.ownStack(") == true)
  }

  @Test("a description is parsed, and missing parts are reported as missing")
  func description() {
    let (description, empty) = Bench().onLoop { rig in
      let empty = LoopDescription(of: rig.loop, names: [])
      let source = rig.keepAlive()
      return (LoopDescription(of: rig.loop, names: [(rig.loop, "loop"), (source, "source")]), empty)
    }
    #expect(description.lines.first?.hasPrefix("<RunLoop loop>{") == true)
    #expect(description.state == "none false (none)")
    #expect(description.set("common modes") == "1 (kCFRunLoopDefaultMode)")
    #expect(description.set("common mode items") == "0 ()")
    #expect(description.set("sources0", of: .default) == "1 (source)")
    #expect(description.set("sources0", of: .tracking) == "missing")
    #expect(description.set("sources2", of: .default) == "missing")
    #expect(empty.items(of: .default) == "sources0 (null), sources1 (null), observers (null), timers (null)")
  }

  @Test("the current call-out is the innermost run's, and none outside a run or in an observer's")
  func innermostCallOut() {
    let seen = Record()
    Bench().onLoop { rig in
      let timer = Timer(deadline: rig.now) { _ in
        let observer = rig.observe(.entry) { _, _ in seen.write(currentCallOut()) }
        rig.loop.perform { seen.write(currentCallOut()) }
        rig.loop.run(mode: .default, for: .zero)
        observer.invalidate()
        seen.write(currentCallOut())
      }
      rig.loop.add(timer, forMode: .default)
      seen.write(currentCallOut())
      rig.loop.run(mode: .default, for: .seconds(1))
      seen.write(currentCallOut())
    }
    #expect(seen.text == "none none block timer none")
  }

  @Test("a sleep takes virtual time, and a wait that finds something ready does not")
  func sleeps() {
    let count = Bench().onLoop { rig in
      let sleeps = rig.countSleeps()
      rig.loop.add(Timer(deadline: rig.now) { _ in }, forMode: .default)
      rig.loop.add(Timer(deadline: rig.now.advanced(by: .seconds(1))) { _ in }, forMode: .default)
      rig.keepAlive()
      rig.loop.run(mode: .default, for: .seconds(2))
      return sleeps.count
    }
    #expect(count == 2)
  }

  @Test("a pipe returns the bytes written to it, and nothing before")
  func pipe() {
    let pipe = Pipe()
    #expect(pipe.read() == 0)
    pipe.write()
    pipe.write()
    #expect(pipe.read() == 2)
  }
}

@Suite("Function names in symbol tables")
struct FunctionNameTests {
  /// Returns the name that a file's table has for a function of this process, or nil if it cannot be read.
  private func name(of address: UInt64, in path: String) -> String? {
    var image = lab_image()
    guard lab_image_find(address, &image) != 0, let symbols = lab_symbols_read(path) else { return nil }
    defer { lab_symbols_free(symbols) }
    return lab_symbols_find(symbols, address - image.base).map { String(cString: $0) }
  }

  @Test("a C library function is found in its file, and other files have no symbols")
  func files() throws {
    let open = UInt64(UInt(bitPattern: try #require(dlsym(nil, "getenv"))))
    var image = lab_image()
    try #require(lab_image_find(open, &image) != 0)
    #expect(name(of: open, in: String(cString: image.path)) == "getenv")
    for path in ["/dev/null", "/", "/etc/passwd", "/nothing", ""] {
      #expect(name(of: open, in: path) == nil, "\(path)")
    }
    // Between functions, and after the last one.
    let symbols = try #require(lab_symbols_read(String(cString: image.path)))
    defer { lab_symbols_free(symbols) }
    #expect(lab_symbols_find(symbols, 0) == nil)
    #expect(lab_symbols_find(symbols, .max) == nil)
  }

  @Test(
    "a file that is truncated or has a random header is no program or has other names, and reads stay within it")
  func garbage() throws {
    var image = lab_image()
    let address = UInt64(UInt(bitPattern: try #require(dlsym(nil, "getenv"))))
    try #require(lab_image_find(address, &image) != 0)
    let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: String(cString: image.path))))
    let path = NSTemporaryDirectory() + "/runloop-symbols-\(getpid())"
    defer { unlink(path) }
    for count in [0, 3, 16, 63, 64, 200, whole.count / 2, whole.count - 1] {
      try Data(whole.prefix(count)).write(to: URL(fileURLWithPath: path))
      if count < whole.count / 2 { #expect(lab_symbols_read(path) == nil, "\(count)") }
      _ = name(of: address, in: path)
    }
    // Every number in the header and in the section list is set to its maximum.
    try Data(whole).write(to: URL(fileURLWithPath: path))
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let sections = whole[40..<48].reversed().reduce(0) { $0 << 8 | Int($1) }
    for place in Array(stride(from: 16, to: 64, by: 2)) + stride(from: sections, to: whole.count - 8, by: 8) {
      let large = [UInt8](repeating: 0xff, count: 8)
      try #require(pwrite(descriptor, large, 8, place) == 8)
      _ = name(of: address, in: path)
      try #require(pwrite(descriptor, Array(whole[place..<(place + 8)]), 8, place) == 8)
    }
    #expect(name(of: address, in: path) == "getenv")
  }
}
