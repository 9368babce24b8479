// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopKit
import RunLoopSockets
import RunLoopThreads
import TestRules
import Testing

@Suite("Errors beside Foundation", .timeLimit(.minutes(20)))
struct LocalizedErrorTests {
  private static let errors: [any Error] = [
    RunLoopError.loopHasEnded, RunLoopError.wrongThread(loop: "thread 7", caller: "thread 8"),
    PortError.queueFull(limit: 3),
    ThreadError.finished(thread: "loader"), SocketError.bufferFull(limit: 65_536),
    SocketAddressError.notNumeric(host: "localhost"), HostError.unknown(host: "nowhere"),
    SpawnError.notFound(program: "nothing"), TLSError(.noServerName),
    SocketActivationError.malformed(variable: "LISTEN_FDS", value: "many"),
    DatagramError.tooLong(byteCount: 70_000, address: nil), InstrumentsError.noDirectory,
    HostConnectionError.cancelled(host: "nowhere"), PieceTooLongError(limit: 3), CutFrameError(byteCount: 5),
    StreamSecurityError.unsupportedLevel("kCFStreamSocketSecurityLevelSSLv3"),
  ]

  @Test("the localized description of each error is its text", .rule(.m21), arguments: errors.indices)
  func text(index: Int) {
    let error = Self.errors[index]
    #expect(error.localizedDescription == "\(error)")
    #expect(!error.localizedDescription.contains("couldn’t be completed"))
  }

  @Test("a system call error names the call and the reason", .rule(.m21))
  func systemError() throws {
    let source = RunLoop.DescriptorSource(descriptor: -1, events: .readable) { _, _ in }
    let error = #expect(throws: RunLoopError.self) { try RunLoop.current.add(source, forMode: .default) }
    let text = try #require(error).localizedDescription
    #expect(text == "descriptor -1 cannot be watched: epoll_ctl: Bad file descriptor (9)")
  }

  @Test("the list contains a value of every public error type in the umbrella's modules", .rule(.m21))
  func complete() throws {
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources")
    var declared: Set<String> = []
    let pattern = #"^public (?:indirect )?(?:enum|struct|final class) (\w+): .*\bError\b"#
    let declaration = try Regex(pattern).anchorsMatchLineEndings()
    // The umbrella module imports none of these.
    let others = [
      "/RunLoopTransactions/", "/RunLoopTesting/", "/RunLoopDisplay/", "/RunLoopHTTP/", "/RunLoopMessages/",
      "/RunLoopSystemEvents/", "/RunLoopGLib/", "/RunLoopLibuv/", "/RunLoopHTTPTesting/",
    ]
    let files = try #require(
      FileManager.default.enumerator(at: sources.standardizedFileURL, includingPropertiesForKeys: nil))
    for case let file as URL in files where file.pathExtension == "swift" && !others.contains(where: file.path.contains)
    {
      for match in try String(contentsOf: file, encoding: .utf8).matches(of: declaration) {
        declared.insert(String(try #require(match.output[1].substring)))
      }
    }
    let listed = Set(Self.errors.map { String(describing: type(of: $0)) })
    // Its text is part of other errors' texts, and it cannot be created outside the package.
    #expect(declared.subtracting(["SystemError"]) == listed)
  }
}
