// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopInstruments

@testable import RunLoopToolKit

/// The entry point for libFuzzer.
///
/// The bytes are an agent's reply. Each line is sent as a frame with its length, except for the last, which is sent
/// unchanged. For any input, the tool must either show a reply or report one sentence with the reason.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let target = try? TargetProcess(getpid()) else { fatalError("this process is there") }
  for request in ["dump", "reasons"] {
    var ends: [Int32] = [0, 0]
    precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    let agent = AgentConnection(socket: ends[0], to: target)
    let lines = bytes.split(separator: 10, omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let head = (0..<4).map { UInt8(truncatingIfNeeded: line.count >> (8 * $0)) }
      send(ends[1], index == lines.count - 1 ? Array(line) : head + line)
    }
    shutdown(ends[1], Int32(SHUT_WR))
    show(request, agent, target)
    close(ends[1])
  }
  return 0
}

private func send(_ socket: Int32, _ bytes: [UInt8]) {
  // Bytes beyond the kernel's buffer are dropped.
  _ = Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
}

private func show(_ request: String, _ agent: AgentConnection, _ target: TargetProcess) {
  do throws(RecordError) {
    let loops = try LoopAnswer.read(request, from: agent, target, thread: nil)
    let symbolizer = Symbolizer([LoadedImage(base: 0, end: .max, buildID: [], path: "/bin/sh")], source: NoSymbols())
    let names = ReasonNames(symbolizer, loops.flatMap(\.reasons))
    for loop in loops {
      _ = NamedDescription(loop, symbolizer).text
      for reason in loop.reasons { _ = (names.code(reason), names.added(reason)) }
    }
  } catch {
    precondition(!error.description.isEmpty && error.description.utf8.count < 100_000)
  }
}

/// A symbolizer without symbols.
private struct NoSymbols: FrameSource {
  func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]] { addresses.map { _ in [] } }
  func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame] { [] }
}
