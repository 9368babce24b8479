// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopNetworking

/// What a task produces for a request's body.
@Suite struct UploadPipeTests {
  @Test("what was taken is dropped, though the producer is always ahead")
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
}
