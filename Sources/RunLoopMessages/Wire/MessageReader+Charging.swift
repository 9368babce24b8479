// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// Packets of senders who pay for what they have this process hold, before it does.
//
// The kernel does not say how many descriptors a packet has; it returns as many as there is room for and closes the
// others, on the thread that receives. So a packet is looked at first: that gives copies of as many descriptors as its
// header says, and tells whether there are more. It is received when there are not, without room for any: the copies
// keep them open. Otherwise it is left in the socket, which another thread closes.
extension MessageReader {
  /// Reads the next packet of a sender, whose message has at most `limit` bytes and is paid by an account.
  ///
  /// The bytes of a message that this returns are charged, and its descriptors until they are taken or closed.
  func next(
    on socket: MessagePort.Descriptor, limit: Int, paidBy account: MessageAccount, takesDescriptors: Bool
  ) throws(SystemError) -> Incoming {
    guard let seen = try look(socket) else { return .nothing }
    // An empty packet looks the same as the end, unless it has descriptors.
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

  /// Looks at the next packet; nil: there is none.
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
        // An error that was kept for this socket comes once.
        case ECONNRESET: continue
        default: throw error
        }
      }
    }
  }

  private enum Copies {
    case all([MessagePort.Descriptor])
    /// There are no numbers for the others.
    case some
    /// The packet has more or less than it says.
    case others
  }

  /// Copies the descriptors of the next packet, which says that there are so many, and which are charged.
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

  /// Takes the next packet out, whose descriptors have copies or of which there are none.
  private func drop(_ socket: MessagePort.Descriptor) throws(SystemError) {
    _ = try SystemCall.receiveMessage.makeUninterrupted { crl_message_discard(socket.number) }
  }
}
