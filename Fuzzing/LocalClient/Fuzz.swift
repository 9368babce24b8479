// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore

@testable import RunLoopMessages

/// A port with connections that the fuzzer creates itself.
private let port: MessagePort.Local = {
  var template = Array("/tmp/message-fuzz-XXXXXX".utf8CString)
  precondition(mkdtemp(&template) != nil)
  let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  var limits = MessagePort.Limits(maximumMessageSize: 4000, maximumUnfinishedMessageCount: 6)
  limits.connectionBytes = 9000
  limits.takesDescriptorsOfOtherUsers = true
  do {
    return try MessagePort.Local(name: "a", directory: .init(path: path), limits: limits) { _ in nil }
  } catch { fatalError("\(error)") }
}()

/// A sender's record of its messages.
private struct Sender {
  var socket: Int32
  var lastToken: UInt64 = 0
  /// The requests without a reply, and the one-way messages that are neither confirmed nor rejected.
  var awaited: Set<UInt64> = []
  var unconfirmed: Set<UInt64> = []

  mutating func send(_ isRequest: Bool, _ length: Int, _ numbers: [Int32]) {
    let frame = MessageFrame(
      isRequest ? .request : .oneWay, token: lastToken + 1, length: length, descriptorCount: numbers.count)
    var packet = [UInt8](repeating: 1, count: MessageFrame.size + length)
    packet.withUnsafeMutableBytes { frame.encode(into: $0) }
    guard crl_message_send(socket, packet, packet.count, nil, 0, numbers, Int32(numbers.count)) > 0 else { return }
    lastToken += 1
    if isRequest { awaited.insert(lastToken) } else { unconfirmed.insert(lastToken) }
  }

  /// Reads one packet; returns false if there is none.
  mutating func read(_ reader: MessageReader, _ descriptor: MessagePort.Descriptor) -> Bool {
    guard let incoming = try? reader.next(on: descriptor, limit: 1 << 20) else { return false }
    guard case .message(let frame, _, _) = incoming else { return false }
    switch frame.kind {
    case .reply, .noReply: precondition(awaited.remove(frame.token) != nil, "an answer to nothing")
    case .rejection where frame.token != 0:
      precondition(
        awaited.remove(frame.token) != nil || unconfirmed.remove(frame.token) != nil, "a refusal of nothing")
    case .rejection: break
    case .confirmation: unconfirmed = unconfirmed.filter { $0 > frame.token }
    case .request, .oneWay: preconditionFailure("a message from a port that sends none")
    }
    return true
  }
}

/// The entry point for libFuzzer: each two bytes are an operation of a sender, the program or the loop.
///
/// In any order, the charged resources must be the existing ones. When everything has been replied to and read, each
/// request must have one reply, each one-way message must be confirmed or rejected, and nothing may be charged.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  guard let first = bytes.first else { return 0 }
  var ends: [Int32] = [0, 0]
  precondition(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
  // Few packets fit, so that some must wait.
  var room: Int32 = first & 2 == 0 ? 5000 : 200_000
  setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, socklen_t(MemoryLayout<Int32>.size))
  let isOther = first & 1 == 1
  let all = MessageAccount(.init(incoming: 20_000, outgoing: 20_000, descriptors: 8, rejected: 9))
  let account =
    isOther ? MessageAccount(.init(incoming: 8000, outgoing: 12_000, descriptors: 3, rejected: 1), above: all) : all
  let credentials = MessagePort.Credentials(process: 1, user: isOther ? geteuid() + 1 : geteuid(), group: 0)
  let peer = MessagePort.Descriptor(owning: ends[1], .connection)
  let reader = MessageReader()
  var sender = Sender(socket: ends[1])
  var held: [MessagePort.Request] = []
  do {
    let client = LocalClient(
      7, MessagePort.Descriptor(owning: ends[0], .connection), credentials, of: port, account, silenceEnd: nil)
    do { try client.enter() } catch { fatalError("\(error)") }
    var isOver = false
    func serve(_ events: UInt32) {
      guard !isOver else { return }
      guard case .isOver = client.serve(events, { held.append($0) }) else { return }
      isOver = true
      client.close()
    }
    for index in stride(from: 1, to: min(bytes.count, 400) - 1, by: 2) {
      let operand = Int(bytes[index + 1])
      switch bytes[index] % 10 {
      case 0, 1: sender.send(bytes[index] % 10 == 0, operand * 20, [])
      case 2: sender.send(true, operand, [Int32](repeating: 0, count: operand % 5))
      case 3: serve(EPOLLIN.rawValue)
      case 4: serve(EPOLLOUT.rawValue)
      case 5 where !held.isEmpty:
        held.remove(at: operand % held.count).reply(MessagePort.Reply([UInt8](repeating: 2, count: operand * 20)))
      case 6 where !held.isEmpty:
        let copy = (try? MessagePort.Descriptor(duplicating: 0)).map { [$0] } ?? []
        held.remove(at: operand % held.count).reply(MessagePort.Reply([3], descriptors: copy))
      case 7 where !held.isEmpty: held.remove(at: operand % held.count).reject(.other)
      case 8: _ = sender.read(reader, peer)
      case 9 where operand == 0:
        let noise: [UInt8] = [1, 2, 3]
        _ = crl_message_send(ends[1], noise, noise.count, nil, 0, nil, 0)
      default: continue
      }
      check(client, held, account, all)
    }
    // Completes all pending messages.
    for _ in 0..<2000 where !isOver {
      held.removeAll()
      while sender.read(reader, peer) {}
      serve(EPOLLIN.rawValue | EPOLLOUT.rawValue)
      waitForCloser()
      if sender.awaited.isEmpty, sender.unconfirmed.isEmpty { break }
    }
    precondition(isOver || (sender.awaited.isEmpty && sender.unconfirmed.isEmpty), "a message without an answer")
    held.removeAll()
    client.close()
    while sender.read(reader, peer) {}
    waitForCloser()
    account.noteReading()
  }
  peer.close()
  waitForCloser()
  account.end()
  if isOther { precondition(account.now.incoming == 0 && all.now.incoming == 0, "a message is charged that is over") }
  return 0
}

private func waitForCloser() { while !DescriptorCloser.isIdle { sched_yield() } }

private func check(
  _ client: LocalClient, _ held: [MessagePort.Request], _ account: MessageAccount, _ all: MessageAccount
) {
  let state = client.state
  let bytes = held.reduce(0) { $0 + $1.bytes.count }
  precondition(state.unfinished == held.count && state.unfinishedBytes == bytes, "not what is held")
  precondition(state.confirmed <= state.received)
  precondition(account.now.incoming == bytes && all.now.incoming == bytes, "another number of bytes is charged")
  guard !state.isClosed else { return precondition(state.waiting == 0 && state.waitingBytes == 0) }
  let waiting = state.outgoing[state.firstOutgoing...].reduce(0) { $0 + $1.amount.outgoing }
  precondition(state.waitingBytes == waiting && state.outgoing.count == state.outgoingOwners.count)
  precondition(account.now.outgoing >= waiting && account.now.descriptors >= 0 && account.now.outgoing >= 0)
}
