// SPDX-License-Identifier: Apache-2.0

import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The pipe for a request body that a task produces.
@Suite struct UploadPipeTests {
  @Test("consumed bytes are released, although the producer is always ahead")
  func dropping() async throws {
    let pipe = UploadPipe(length: nil) {}
    var target = [UInt8](repeating: 0, count: 32_768)
    var (sent, taken): ([UInt8], [UInt8]) = ([1], [])
    try await pipe.send(sent)
    for number in 0..<200 {
      let chunk = pattern(target.count, from: number)
      sent += chunk
      try await pipe.send(chunk)
      guard case .bytes(let count) = target.withUnsafeMutableBytes({ pipe.read(into: $0) }) else { break }
      taken += target[..<count]
      #expect(pipe.buffer.count <= 2 * target.count + 1)
    }
    guard case .bytes(let count) = target.withUnsafeMutableBytes({ pipe.read(into: $0) }) else { return }
    taken += target[..<count]
    #expect(taken == sent)
    #expect(pipe.buffer.isEmpty)
    pipe.close()
  }

  @Test("bytes that a server does not read stay in the program, not in the kernel")
  func queues() async throws {
    // No connection is accepted.
    let listener = try ListeningSocket(at: .loopback(port: 0))
    let made = Box(0)
    let body = HTTP.Content.stream {
      AsyncStream {
        made.update { $0 += 64 * 1024 }
        return [UInt8](repeating: 1, count: 64 * 1024)
      }
    }
    let request = HTTP.Request(.put, "http://127.0.0.1:\(listener.address.port ?? 0)/", body: body)
    try await withClient {
      $0.idleTimeout = .seconds(1)
    } _: { client in
      // Repeated if the producer had no thread of the pool until the time was over.
      repeat {
        made.value = 0
        #expect(await end(client, request) == "timedOut")
      } while made.value == 0
    }
    #expect(made.value < 1 << 20)
    listener.invalidate()
  }
}
