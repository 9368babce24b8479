// SPDX-License-Identifier: Apache-2.0

import CRunLoopAgent
import Foundation
import Glibc
import RunLoopInstruments

/// A peer of the agent that can send anything.
final class AgentSocket {
  let number: Int32

  /// Connects to a victim's agent, and throws if no agent is listening.
  init(_ victim: Victim) throws {
    guard let file = victim.file else { throw VictimError(text: "the victim has no directory") }
    let path = file.replacingOccurrences(of: "/rings", with: "/agent")
    number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    let answer = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    // Far longer than the agent takes to respond on any machine.
    var limit = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    guard answer == 0 else {
      close(number)
      throw VictimError(text: "\(path): \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(number) }

  func send(_ bytes: [UInt8]) { _ = Glibc.send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

  /// Sends a frame with its real length, or with another one.
  func sendFrame(_ text: String, length: UInt32? = nil) {
    let bytes = Array(text.utf8)
    let length = length ?? UInt32(bytes.count)
    send((0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + bytes)
  }

  /// The next frame, or nil if the agent closed the connection.
  func frame() -> AgentDocument? {
    guard let head = receive(4) else { return nil }
    let length = head.enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
    return receive(length).flatMap { AgentDocument(bytes: $0) }
  }

  /// All frames of the response to a request, or only the one that reports an error.
  func answer(_ request: String) -> [AgentDocument] {
    sendFrame(request)
    var frames: [AgentDocument] = []
    while let frame = frame() {
      frames.append(frame)
      if frame["end"] != nil || frame["error"] != nil { break }
    }
    return frames
  }

  private func receive(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var received = 0
    while received < count {
      let number = bytes[received...].withUnsafeMutableBytes { recv(self.number, $0.baseAddress, $0.count, 0) }
      guard number > 0 else { return nil }
      received += number
    }
    return bytes
  }
}
