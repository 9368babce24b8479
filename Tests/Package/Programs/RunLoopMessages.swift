// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopMessages

/// A message to a port of this process, and its reply.
@main enum Program {
  static func main() throws {
    let name = "package-check-\(getpid())"
    let port = try MessagePort.Local(name: name) { request in MessagePort.Reply(request.bytes + [33]) }
    let loop = RunLoop.current
    try loop.add(port, forMode: .default)
    let remote = try MessagePort.Remote(name: name)
    let reply = try remote.send(
      id: 1, bytes: Array("hello".utf8), receiveTimeout: .seconds(60), replyMode: .default)
    port.invalidate()
    print("RunLoopMessages: \(String(decoding: reply?.bytes ?? [], as: UTF8.self))")
  }
}
