// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopInstruments
import Testing

@testable import RunLoopToolKit

private struct Functions: FrameSource {
  let names: [String: [UInt64: [String]]]

  func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]] {
    addresses.map { address in
      (names[path]?[address] ?? []).map { CodeFrame(symbol: $0, file: "/src/main.swift", line: 7) }
    }
  }

  func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame] { [] }
  func isKept(_ path: String, _ identity: [UInt8]) -> Bool { true }
}

@Suite("The names of a hang", .ownThread) struct HangNamesTests {
  private static let libc = "/lib/x86_64-linux-gnu/libc.so.6"
  private static let dispatch = "/opt/swift/usr/lib/swift/linux/libdispatch.so"
  private static let source = Functions(names: [
    libc: [0x10: ["do_futex_wait"], 0x1f: ["__new_sem_wait_slow64"]],
    dispatch: [0x2f: ["_dispatch_semaphore_wait_slow"]],
    "/bin/app": [
      0x3f: ["$s4main6LedgerC12waitForReplyyyF"], 0x4f: ["swift_job_run"],
      0x5f: ["$s11RunLoopCore03runB27IsCallingOutToAnExecutorJobyyAA0bK0VF"],
    ],
  ])

  private func hang(_ stack: [(String, UInt64)], counts: String = "", code: String = "") throws -> SymbolicatedHang {
    let places = stack.map { "{\"address\": \($0.1), \"image\": \"\($0.0)\", \"offset\": \($0.1)}" }
    let text = """
      {"loop": 1, "thread": 2, "threadName": "store", "depth": 1, "begin": 0, "processor": "blocked", \(counts) \(code)
      "stack": [\(places.joined(separator: ", "))], "samples": 4, "isBacklog": false, "sites": [], "leftOut": 0}
      """
    return try JSONDecoder().decode(HangReport.self, from: Data(text.utf8)).symbolicated(by: HangNamesTests.source)
  }

  private let whole = [
    (HangNamesTests.libc, UInt64(0x10)), (HangNamesTests.libc, 0x20), (HangNamesTests.dispatch, 0x30),
    ("/bin/app", 0x40), ("/bin/app", 0x50), ("/bin/app", 0x60),
  ]

  @Test("a hang's stack shows all functions below the user's, and the call-out is the user's function")
  func stack() throws {
    let hang = try hang(whole)
    #expect(
      hang.stack.map(\.place.function) == [
        "do_futex_wait", "__new_sem_wait_slow64", "_dispatch_semaphore_wait_slow", "Ledger.waitForReply()",
      ])
    #expect(hang.kind == "job")
    #expect(hang.code?.function == "Ledger.waitForReply()")
  }

  @Test("a call-out is never named after a C library function, even if nothing else is known")
  func system() throws {
    let inner = Array(whole.prefix(2))
    #expect(try hang(inner).code == nil)
    #expect(try hang(inner).stack.map(\.place.function) == ["do_futex_wait", "__new_sem_wait_slow64"])
    let code = "\"code\": {\"address\": 16, \"image\": \"\(HangNamesTests.libc)\", \"offset\": 16},"
    #expect(try hang(whole, code: code).code?.function == "Ledger.waitForReply()")
  }

  @Test("unproven frames are marked, and functions missing from some samples show their share")
  func marks() throws {
    let hang = try hang(whole, counts: "\"provedFrames\": 3, \"stackCounts\": [1, 3, 4, 4, 4, 4],")
    #expect(hang.stack.map(\.isProved) == [true, true, true, false])
    #expect(hang.stack.map(\.share) == [25, 75, 100, 100])
    let text = HangText.lines(hang)
    #expect(text.contains { $0.hasSuffix("? Ledger.waitForReply() main.swift:7") })
    #expect(text.contains { $0.contains("do_futex_wait main.swift:7  25 %") })
    #expect(hang.stack.map(\.json.line).last?.contains("\"guess\": true") == true)
    #expect(hang.stack.map(\.json.line).first?.contains("\"share\": 25") == true)
  }

  @Test(
    "a function of the kernel's library is named by the same library of the tool",
    .enabled(if: ProcessMemoryTests.hasKernelLibrary))
  func kernelLibrary() throws {
    let library = try #require(ProcessMemory(process: getpid()).images.first { $0.path == CodeImage.kernelLibrary })
    #if arch(x86_64)
      let name = "clock_gettime"
    #else
      let name = "__kernel_clock_gettime"
    #endif
    let handle = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD)
    let function = try #require(dlsym(handle, name))
    let offset = UInt64(UInt(bitPattern: function)) - library.base
    let digits = library.buildID.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    let text = """
      {"loop": 1, "thread": 2, "threadName": "store", "depth": 1, "begin": 0, "processor": "on-cpu",
      "stack": [{"address": \(offset), "image": "[vdso]", "offset": \(offset), "buildID": "\(digits)"},
      {"address": 64, "image": "/bin/app", "offset": 64}],
      "samples": 4, "isBacklog": false, "sites": [], "leftOut": 0}
      """
    let hang = try JSONDecoder().decode(HangReport.self, from: Data(text.utf8))
    let functions = hang.symbolicated(by: HangNamesTests.source).stack.map(\.place.function)
    #expect(functions.first?.hasSuffix("clock_gettime") == true && functions.count == 2, "\(functions)")
  }
}
