// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

@testable import RunLoopMessages

/// The entry point for libFuzzer: each two bytes are an event for a remote port's messages.
///
/// In any order, each request must be in the state until it has its outcome, each one-way message until it is
/// confirmed or rejected, and nothing else may be, as in two plain lists.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  var state = RemoteState()
  var awaited: [(token: UInt64, waiter: ReplyWaiter)] = []
  var unconfirmed: [(token: UInt64, id: Int32)] = []
  var last: (token: UInt64, waiter: ReplyWaiter?)?
  for index in stride(from: 0, to: bytes.count - 1, by: 2) {
    let operation = bytes[index] % 9
    // A token near the last one: of a message that exists, existed, or never did.
    let token = state.lastToken &+ 1 &- UInt64(bytes[index + 1])
    var next: (token: UInt64, waiter: ReplyWaiter?)?
    switch operation {
    case 0, 1:
      let waiter = state.takeWaiter()
      precondition(waiter.outcome == nil && waiter.wake == nil)
      next = (state.register(id: Int32(bytes[index + 1]), waiter), waiter)
      awaited.append((state.lastToken, waiter))
      precondition(waiter.token == state.lastToken)
    // More messages than one cleaning step of the list removes.
    case 2, 3:
      for _ in 0..<(operation == 2 ? 1 : 300) where state.unconfirmed.count < UnconfirmedMessages.limit {
        next = (state.register(id: Int32(bytes[index + 1]), nil), nil)
        unconfirmed.append((state.lastToken, Int32(bytes[index + 1])))
      }
    case 4:
      // The last one was not sent after all.
      guard let (token, waiter) = last else { continue }
      state.unregister(token, waiter)
      if waiter != nil {
        awaited.removeAll { $0.token == token }
      } else {
        unconfirmed.removeAll { $0.token == token }
      }
      precondition(state.lastToken == token - 1)
    case 5:
      let expected = awaited.first { $0.token == token }?.waiter
      let found = state.pending.remove(token)
      precondition(found === expected, "another request's waiter")
      awaited.removeAll { $0.token == token }
      if let found {
        found.outcome = .success(nil)
        precondition(found.takeOutcome() != nil && found.takeOutcome() == nil)
        state.spareWaiter = found
      }
    case 6:
      let expected = unconfirmed.count { $0.token <= token }
      precondition(state.unconfirmed.confirm(upTo: token) == expected, "not as many as were sent are confirmed")
      unconfirmed.removeAll { $0.token <= token }
    case 7:
      let expected = unconfirmed.first { $0.token == token }
      let found = state.unconfirmed.remove(token)
      precondition(found?.token == expected?.token && found?.id == expected?.id, "another message is refused")
      unconfirmed.removeAll { $0.token == token }
    default:
      guard bytes[index + 1] == 0 else { continue }
      precondition(state.pending.removeAll().map(\.token) == awaited.map(\.token))
      precondition(state.unconfirmed.removeAll().map(\.token) == unconfirmed.map(\.token))
      (awaited, unconfirmed) = ([], [])
    }
    last = next
    precondition(state.pending.count == awaited.count && state.pending.isEmpty == awaited.isEmpty)
    precondition(state.unconfirmed.count == unconfirmed.count)
  }
  precondition(state.pending.removeAll().map(\.token) == awaited.map(\.token))
  precondition(state.unconfirmed.removeAll().map(\.token) == unconfirmed.map(\.token))
  return 0
}
