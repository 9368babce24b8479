// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// Reading from senders that are charged for resources before this process acquires them.
//
// The kernel does not report how many descriptors a packet has. It returns as many as there is room for and closes the
// others on the receiving thread. The packet is therefore peeked at first, which copies as many descriptors as its
// header announces and shows whether there are more. If there are none, the packet is received without room for
// descriptors, and the copies keep them open. Otherwise the packet is left in the socket, which another thread closes.
extension MessageReader {
  /// Reads the next packet of a sender, whose message may have at most `limit` bytes and is charged to an account.
  ///
  /// The bytes of a returned message stay charged, and its descriptors until they are taken or closed.
  func next(
    on socket: MessagePort.Descriptor, limit: Int, paidBy account: MessageAccount, takesDescriptors: Bool
  ) throws(SystemError) -> Incoming {
    guard let seen = try look(socket) else { return .nothing }
    // An empty packet looks like the end of the connection, unless it has descriptors.
    guard seen.size > 0 || seen.truncation & 2 != 0 else { return .ended }
    guard let frame = frame(seen.size, seen.truncation) else { return .malformed }
    let carried = frame.carriedDescriptors
    guard (carried > 0) == (seen.truncation & 2 != 0) else { return .malformed }
    func rejected(_ reason: MessagePort.Rejection) throws(SystemError) -> Incoming {
      guard carried == 0 else { return .left(frame, reason) }
      try drop(socket)
      return .rejected(frame, reason)
    }
    guard frame.descriptorCount == 0 || takesDescriptors else { return .left(frame, .descriptorsUnwanted) }
    guard frame.length <= limit else { return try rejected(.tooLarge) }
    guard account.take(.init(incoming: frame.length, descriptors: carried)) else { return try rejected(.quotaExceeded) }
    var isTaken = false
    defer { if !isTaken { account.release(.init(incoming: frame.length)) } }
    var descriptors: [MessagePort.Descriptor] = []
    if carried > 0 {
      switch try copies(socket, carried, account) {
      case .all(let copies): descriptors = copies
      case .some: return .left(frame, .descriptorsLost)
      case .others: return .malformed
      }
    }
    try drop(socket)
    let incoming = try message(frame, descriptors)
    if case .message = incoming { isTaken = true }
    return incoming
  }

  /// Peeks at the next packet, or returns `nil` if there is none.
  private func look(_ socket: MessagePort.Descriptor) throws(SystemError) -> (size: Int32, truncation: Int32)? {
    while true {
      var count: Int32 = 0
      var truncation: Int32 = 0
      do throws(SystemError) {
        let size = try SystemCall.messagePeek.make {
          crl_message_peek(socket.number, packet.baseAddress, packet.count, nil, 0, &count, &truncation)
        }
        return (size, truncation)
      } catch {
        switch error.number {
        case EAGAIN, EINTR: return nil
        // The error pending on this socket is reported only once.
        case ECONNRESET: continue
        default: throw error
        }
      }
    }
  }

  private enum Copies {
    case all([MessagePort.Descriptor])
    /// The process has no room for the other descriptors.
    case some
    /// The packet has more or fewer descriptors than its header announces.
    case others
  }

  /// Copies the descriptors of the next packet, whose number is announced by its header and already charged.
  private func copies(
    _ socket: MessagePort.Descriptor, _ carried: Int, _ account: MessageAccount
  ) throws(SystemError) -> Copies {
    var count: Int32 = 0
    var truncation: Int32 = 0
    var byte: UInt8 = 0
    defer { account.release(.init(descriptors: carried - Int(count))) }
    _ = try SystemCall.messagePeek.make {
      crl_message_peek(socket.number, &byte, 1, numbers.baseAddress, Int32(carried), &count, &truncation)
    }
    let descriptors = numbers.prefix(Int(count)).map { number in
      let descriptor = MessagePort.Descriptor(owning: number, .apart)
      descriptor.charge(MessageCharge(.init(descriptors: 1), to: account))
      return descriptor
    }
    if truncation & 2 == 0 { return descriptors.count == carried ? .all(descriptors) : .others }
    return descriptors.count == carried ? .others : .some
  }

  /// Discards the next packet, which has no descriptors, or only ones that were copied.
  private func drop(_ socket: MessagePort.Descriptor) throws(SystemError) {
    _ = try SystemCall.receiveMessage.makeUninterrupted { crl_message_discard(socket.number) }
  }
}
