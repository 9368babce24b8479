// SPDX-License-Identifier: Apache-2.0

import Foundation
import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

/// A running `openssl` command.
final class OpenSSLProgram: Sendable {
  /// A socket instead of a pipe: writing to a program that has ended then raises no signal.
  private let input: Int32
  private let text = Box("")
  private let status = Box<Int32?>(nil)
  private let reader: StartedThread<Void>

  convenience init(_ arguments: String...) throws { try self.init(arguments) }

  init(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: TLSFiles.openssl)
    process.arguments = arguments
    let (near, far) = try socketPair()
    input = near
    let farHandle = FileHandle(fileDescriptor: far, closeOnDealloc: true)
    process.standardInput = farHandle
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.start()
    try farHandle.close()
    let (text, status) = (text, status)
    reader = startThread {
      while true {
        let data = output.fileHandleForReading.availableData
        guard !data.isEmpty else { break }
        text.update { $0 += String(decoding: data, as: UTF8.self) }
      }
      process.waitUntilExit()
      status.value = process.terminationStatus
    }
  }

  /// The output so far.
  var output: String { text.value }

  deinit { close(input) }

  func send(_ line: String) {
    let bytes = Array(line.utf8)
    _ = Glibc.send(input, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Waits until the output contains a text, or the program has ended.
  func wait(for part: String) async {
    let (text, status) = (text, status)
    await elsewhere { waitUntil { text.value.contains(part) || status.value != nil } }
    if !text.value.contains(part) { Issue.record("no \"\(part)\" in \(text.value)") }
  }

  /// Returns the address that a server listens on, which is its first output.
  func acceptAddress() async throws -> SocketAddress {
    await wait(for: "ACCEPT 127.0.0.1:")
    let text = output
    let port = text.split(separator: "ACCEPT 127.0.0.1:", maxSplits: 1, omittingEmptySubsequences: false).last ?? ""
    return try SocketAddress("127.0.0.1:\(port.prefix { $0.isNumber })")
  }

  /// Closes the program's input and waits for its end; every test must call this once.
  func end() async -> Int32 {
    shutdown(input, Int32(SHUT_RDWR))
    let (status, reader) = (status, reader)
    await elsewhere { reader.result() }
    return status.value ?? -1
  }
}
