// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopMessages

@Suite("The queue of a connection's outgoing packets")
struct LocalClientStateTests {
  private func reply(_ token: UInt64, _ bytes: [UInt8]) -> MessageContent {
    MessageContent(.reply, id: 0, token: token, bytes: bytes, descriptors: [])
  }

  /// Whether the bytes are shared, so that a write copies them.
  private func isShared(_ bytes: inout [UInt8]) -> Bool {
    let before = bytes.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
    bytes[0] ^= 1
    return bytes.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } != before
  }

  @Test("sent replies are released although another always waits")
  func backlogOfOne() {
    var state = LocalClientState()
    var payloads = (0..<10_000).map { [UInt8](repeating: UInt8(truncatingIfNeeded: $0), count: 32) }
    state.append(reply(0, payloads[0]), [])
    for index in 1..<payloads.count {
      state.append(reply(UInt64(index), payloads[index]), [])
      _ = state.removeNext()
    }
    #expect(state.waiting == 1)
    #expect(state.waitingBytes == 32)
    var live: [Int] = []
    for index in payloads.indices where isShared(&payloads[index]) { live.append(index) }
    #expect(live == [9_999])
  }

  @Test("replies leave in order with their descriptors' owners", arguments: [1, 2, 63, 64, 65, 200])
  func order(backlog: Int) throws {
    var state = LocalClientState()
    var owners: [MessagePort.Descriptor] = []
    func append(_ index: Int) {
      owners.append(MessagePort.Descriptor(owning: -1))
      state.append(reply(UInt64(index), [UInt8](repeating: 0, count: index % 7)), [owners[index]])
    }
    for index in 0..<backlog { append(index) }
    for index in 0..<1000 {
      append(backlog + index)
      try #require(state.next?.frame.token == UInt64(index))
      let released = state.removeNext()
      try #require(released == [owners[index]])
      try #require(state.waiting == backlog)
      try #require(state.waitingBytes == (index + 1...index + backlog).reduce(0) { $0 + $1 % 7 })
    }
    let left = state.removeWaiting().map { $0.content.frame.token }
    #expect(left == (1000..<1000 + backlog).map { UInt64($0) })
    #expect(state.waiting == 0 && state.waitingBytes == 0 && state.next == nil)
  }
}
