// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore

@testable import RunLoopMessages

/// A kind of descriptor in a packet.
private enum Thing: UInt8 {
  case sealed, pipe, unsealed, sparse, long
}

/// The descriptors to send in packets, created once and owned by the fuzzer.
private let things: [Thing: Int32] = {
  var ends: [Int32] = [0, 0]
  precondition(pipe(&ends) == 0)
  func memory(_ count: Int, isSealed: Bool = true, hasHoles: Bool = false) -> Int32 {
    let number = crl_message_memory()
    let bytes = [UInt8](repeating: 7, count: count)
    if hasHoles {
      precondition(ftruncate(number, count) == 0)
    } else {
      precondition(write(number, bytes, count) == count)
    }
    if isSealed { precondition(crl_message_memory_seal(number) == 0) }
    return number
  }
  return [
    .sealed: memory(size), .pipe: ends[1], .unsealed: memory(size, isSealed: false),
    .sparse: memory(size, hasHoles: true), .long: memory(size + 1),
  ]
}()

private let size = 5000
private let limit = 6000

/// The entry point for libFuzzer: each eight bytes are a packet with a header, a payload and descriptors, parts of
/// which may be invalid.
///
/// The reader's result must match the expectation below. It must charge exactly what it returns, and leave no
/// descriptor open.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  guard let first = bytes.first else { return 0 }
  _ = things
  while !DescriptorCloser.isIdle { sched_yield() }
  let lowest = dup(0)
  close(lowest)
  var ends: [Int32] = [0, 0]
  precondition(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
  do {
    let receiving = MessagePort.Descriptor(owning: ends[0], .connection)
    let all = MessageAccount(
      .init(maximumConnectionCount: 9, incoming: 1 << 20, outgoing: 9, descriptors: 99, rejected: 9))
    let account = MessageAccount(.init(incoming: 7000, outgoing: 9, descriptors: 3, rejected: 1), above: all)
    let reader = MessageReader()
    for index in stride(from: 1, to: min(bytes.count, 129) - 7, by: 8) {
      let next = UnsafeBufferPointer(rebasing: bytes[index..<index + 8])
      guard send(next, on: ends[1], reader, receiving, first, account) else { break }
    }
    close(ends[1])
    _ = all
    while !DescriptorCloser.isIdle { sched_yield() }
    precondition(account.isUnused && all.isUnused, "something is charged that is not there")
  }
  while !DescriptorCloser.isIdle { sched_yield() }
  let after = dup(0)
  close(after)
  precondition(after == lowest, "a descriptor is left open")
  return 0
}

/// Sends one packet and checks the result; returns false if the connection has ended.
private func send(
  _ bytes: UnsafeBufferPointer<UInt8>, on socket: Int32, _ reader: MessageReader, _ receiving: MessagePort.Descriptor,
  _ mode: UInt8, _ account: MessageAccount
) -> Bool {
  let isOther = mode & 1 == 1
  let takesDescriptors = mode & 2 == 2
  let isOutOfLine = bytes[0] & 1 == 1
  let length = isOutOfLine ? (bytes[0] & 2 == 2 ? size : Int(bytes[1]) * 40) : Int(bytes[1]) * 30
  let kind = MessageFrame.Kind(rawValue: bytes[2] % 7)
  let claimed = Int(bytes[3] % 5)
  var numbers = (0..<Int(bytes[4] % 6)).map { things[Thing(rawValue: (bytes[5] >> $0) % 5) ?? .pipe] ?? -1 }
  if isOutOfLine, bytes[0] & 4 == 0 { numbers.insert(things[Thing(rawValue: bytes[0] >> 3) ?? .sealed] ?? -1, at: 0) }
  var packet = [UInt8](repeating: 0, count: MessageFrame.size + (isOutOfLine ? 0 : length))
  packet.withUnsafeMutableBytes {
    MessageFrame(
      kind ?? .request, id: 5, token: 9, length: length, isOutOfLine: isOutOfLine, descriptorCount: claimed
    ).encode(into: $0)
  }
  // May change one byte of the header, or truncate the packet.
  if bytes[6] & 64 != 0 { packet[Int(bytes[6] % 32)] ^= bytes[7] }
  if bytes[6] & 128 != 0 { packet.removeLast(min(packet.count, Int(bytes[7]))) }
  let sent = crl_message_send(socket, packet, packet.count, nil, 0, numbers, Int32(numbers.count))
  precondition(sent == packet.count)
  let incoming: MessageReader.Incoming
  do {
    incoming =
      isOther
      ? try reader.next(on: receiving, limit: limit, paidBy: account, takesDescriptors: takesDescriptors)
      : try reader.next(on: receiving, limit: limit)
  } catch {
    fatalError("\(error)")
  }
  let frame = packet.withUnsafeBytes { try? MessageFrame(decoding: $0) }
  let expected = expectation(frame, packet, numbers, isOther, takesDescriptors)
  precondition(word(incoming) == expected, "\(word(incoming)) and not \(expected)")
  guard case .message(let found, let payload, let descriptors) = incoming else {
    if case .rejected = incoming { return true }
    return false
  }
  precondition(found == frame && payload.count == found.length && descriptors.count == found.descriptorCount)
  precondition(payload.allSatisfy { $0 == (found.isOutOfLine ? 7 : 0) })
  guard isOther else { return true }
  let now = account.now
  precondition(now.incoming == payload.count && now.descriptors >= descriptors.count)
  account.release(.init(incoming: payload.count))
  for descriptor in descriptors { descriptor.close() }
  while !DescriptorCloser.isIdle { sched_yield() }
  precondition(account.isUnused)
  return true
}

/// Returns the expected result of reading a packet.
private func expectation(
  _ frame: MessageFrame?, _ packet: [UInt8], _ numbers: [Int32], _ isOther: Bool, _ takesDescriptors: Bool
) -> String {
  if packet.isEmpty, numbers.isEmpty || !isOther { return "ended" }
  guard let frame else { return "malformed" }
  let isMemory = numbers.first == things[.sealed] && frame.length == size
  let isLonger = numbers.first == things[.long] && frame.length == size + 1
  let whole = !frame.isOutOfLine || isMemory || isLonger ? "message" : "malformed"
  guard isOther else {
    guard numbers.count == frame.carriedDescriptors else { return "malformed" }
    return frame.length > limit ? "refused tooLarge" : whole
  }
  guard numbers.isEmpty == (frame.carriedDescriptors == 0) else { return "malformed" }
  if frame.descriptorCount > 0, !takesDescriptors { return "left descriptorsUnwanted" }
  let rejected = numbers.isEmpty ? "refused" : "left"
  if frame.length > limit { return "\(rejected) tooLarge" }
  if frame.carriedDescriptors > 3 { return "\(rejected) quotaExceeded" }
  return numbers.count == frame.carriedDescriptors ? whole : "malformed"
}

private func word(_ incoming: MessageReader.Incoming) -> String {
  switch incoming {
  case .message: "message"
  case .rejected(_, let reason): "refused \(reason)"
  case .left(_, let reason): "left \(reason)"
  case .malformed: "malformed"
  case .nothing: "nothing"
  case .ended: "ended"
  }
}
