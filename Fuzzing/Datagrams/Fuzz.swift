// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

@testable import RunLoopSockets

/// The datagrams that a receiver has reported.
private final class Told: @unchecked Sendable {
  // Sendable: everything happens on one thread.
  var datagrams: [(bytes: [UInt8], envelope: Datagram.Envelope)] = []
}

/// Binds a descriptor to an abstract name, or to one that the kernel chooses; returns false if the name is in use.
private func bindName(_ descriptor: Int32, _ name: ArraySlice<UInt8>) -> Bool {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  let name = name.prefix(MemoryLayout.size(ofValue: address.sun_path) - 1)
  withUnsafeMutableBytes(of: &address.sun_path) { $0.dropFirst().copyBytes(from: name) }
  // Without a name the kernel chooses one.
  let length = MemoryLayout<sa_family_t>.size + (name.isEmpty ? 0 : name.count + 1)
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, UInt32(length)) == 0 }
  }
}

/// The entry point for libFuzzer: datagrams from senders with any name or none, of any length, to a receiver with a
/// small buffer.
///
/// Each datagram must arrive once and in order, with its length, as many of its bytes as fit, and its sender's name,
/// to which a reply can be sent.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var rest = UnsafeBufferPointer(start: start, count: count)[...]
  func next() -> Int { Int(rest.popFirst() ?? 0) }
  var options = DatagramSocket.Options()
  options.maximumDatagramSize = 1 + next()
  let told = Told()
  let name = "run-loop-fuzz-\(getpid())"
  guard let own = try? SocketAddress(abstractName: name),
    let receiver = try? DatagramSocket(
      boundTo: own, options: options,
      handler: { _, event in
        if case .received(let bytes, let envelope) = event {
          told.datagrams.append((bytes.withUnsafeBytes { Array($0) }, envelope))
        }
      })
  else { fatalError("no receiver") }
  do { try RunLoop.current.add(receiver, forMode: .default) } catch { fatalError("\(error)") }
  var sent: [(bytes: [UInt8], isNamed: Bool)] = []
  // A pass receives as many as the socket expects, and at least one.
  func receiveAll() {
    for _ in 0..<10 where told.datagrams.count < sent.count { RunLoop.current.run(mode: .default, for: .zero) }
    precondition(told.datagrams.count == sent.count, "\(told.datagrams.count) of \(sent.count) have arrived")
  }
  // Fewer than the kernel queues for one receiver.
  while !rest.isEmpty, sent.count < 10 {
    let sender = socket(
      AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    defer { close(sender) }
    let (kind, size) = (next(), next() * (1 + next() % 8))
    let isNamed = kind & 1 == 1 && bindName(sender, Array(rest.prefix(kind >> 1))[...])
    rest = rest.dropFirst(kind >> 1)
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &+ kind) }
    let isSent = own.withBytes { address, length in
      sendto(sender, bytes, size, 0, address?.assumingMemoryBound(to: sockaddr.self), length) == size
    }
    precondition(isSent, "not sent: \(errno)")
    sent.append((bytes, isNamed))
    if kind & 2 == 0 { continue }
    receiveAll()
    if isNamed, let address = told.datagrams.last?.envelope.sender {
      precondition((try? receiver.send([1], to: address)) == true, "no answer to \(address)")
    }
  }
  receiveAll()
  // No datagram arrives twice.
  RunLoop.current.run(mode: .default, for: .zero)
  precondition(told.datagrams.count == sent.count, "\(told.datagrams.count) of \(sent.count) have arrived")
  for (got, sent) in zip(told.datagrams, sent) {
    let limit = options.maximumDatagramSize
    precondition(got.envelope.byteCount == sent.bytes.count && got.envelope.isTruncated == (sent.bytes.count > limit))
    precondition(got.bytes == Array(sent.bytes.prefix(limit)), "other bytes")
    precondition((got.envelope.sender != nil) == sent.isNamed, "another sender")
  }
  receiver.invalidate()
  return 0
}
