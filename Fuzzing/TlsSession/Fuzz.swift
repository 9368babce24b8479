// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

@testable import RunLoopSockets

/// Both ends' contexts, created once, with the certificate and the key from the file that the environment names.
private let contexts: (client: TLSContext, server: TLSContext) = {
  guard let path = getenv("FUZZ_TLS_IDENTITY").map({ String(cString: $0) }) else {
    fatalError("FUZZ_TLS_IDENTITY names no file")
  }
  do {
    var client = TLSConfiguration()
    client.roots = [.file(path)]
    client.applicationProtocols = ["a", "b"]
    var server = TLSServerConfiguration(identity: TLSIdentity(certificateFile: path, keyFile: path))
    server.applicationProtocols = ["b"]
    return (try TLSContext(client), try TLSContext(server))
  } catch { fatalError("\(error)") }
}()

/// One end, with the bytes that it has written and received.
private struct End {
  let session: TLSSession
  var written: [UInt8] = []
  var got: [UInt8] = []

  /// Passes bytes to the end; its output must be what the other has written, however the bytes were changed.
  mutating func receive(_ bytes: [UInt8], room: Int, from other: [UInt8]) {
    let (hadFailed, hadEnded) = (session.state.failure != nil, session.state.hasEnded)
    var plain = [UInt8](repeating: 0, count: room)
    let count = bytes.withUnsafeBytes { bytes in plain.withUnsafeMutableBytes { session.receive(bytes, into: $0) } }
    got += plain[..<count]
    precondition(count == 0 || !hadFailed && !hadEnded, "bytes after the end")
    takePlain()
    precondition(other.starts(with: got), "bytes that nobody has written")
    precondition(session.outputCount < 4 * TLSSession.outputLimit, "too much is answered")
  }

  private mutating func takePlain() {
    while session.plain.count > 0 {
      var plain = [UInt8](repeating: 0, count: 100)
      let count = plain.withUnsafeMutableBytes { session.takePlain(into: $0) }
      got += plain[..<count]
    }
  }
}

/// The entry point for libFuzzer: each three bytes are an event for two ends of a connection.
///
/// Whatever is lost, changed or forged in transit, an end may only receive bytes that the other has written, in
/// order, and none after an end or a failure. Neither end may grow without bound.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  guard let client = try? TLSSession(contexts.client, serverName: "localhost"),
    let server = try? TLSSession(contexts.server)
  else { fatalError("no session") }
  var ends = [End(session: client), End(session: server)]
  for end in ends { end.session.start() }
  for index in stride(from: 0, to: bytes.count - 2, by: 3) {
    let (operation, first, second) = (bytes[index], Int(bytes[index + 1]), Int(bytes[index + 2]))
    let (from, to) = operation & 1 == 0 ? (0, 1) : (1, 0)
    var moved = ends[from].session.withOutput { Array($0) }
    switch operation >> 1 & 7 {
    case 0, 1, 2: break
    case 3: moved = Array(moved.prefix(first * 256 + second))
    case 4 where !moved.isEmpty: moved[(first * 256 + second) % moved.count] ^= UInt8(first | 1)
    case 5:
      let text = [UInt8](repeating: UInt8(second), count: first * 100 + 1)
      if text.withUnsafeBytes({ ends[from].session.write($0) }) == text.count { ends[from].written += text }
      continue
    case 6:
      if first & 1 == 0 { ends[from].session.endWriting() } else { ends[from].session.transportEnded() }
      continue
    default:
      // Forged bytes.
      ends[to].receive([UInt8(first), 3, 3, 0, UInt8(second)] + [0, 1, 2, 3], room: second, from: ends[from].written)
      continue
    }
    ends[from].session.sent(min(moved.count, ends[from].session.outputCount))
    ends[to].receive(moved, room: second, from: ends[from].written)
  }
  return 0
}
