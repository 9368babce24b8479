// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// A message as it is sent: its frame, and its payload in the packet or in memory that is passed.
///
/// The memory is made when the message is about to be sent, by ``prepare()``: those that wait are bytes only.
struct MessageContent: Sendable {
  var frame: MessageFrame
  private let bytes: [UInt8]
  private var memory: MessagePort.Descriptor?
  private let descriptors: [Int32]

  /// Makes a message without content.
  init(_ kind: MessageFrame.Kind, id: Int32 = 0, token: UInt64) {
    frame = MessageFrame(kind, id: id, token: token)
    bytes = []
    memory = nil
    descriptors = []
  }

  /// Makes a message.
  ///
  /// The descriptors are the caller's, who keeps them open until the message was sent.
  init(
    _ kind: MessageFrame.Kind, id: Int32, token: UInt64 = 0, bytes: [UInt8], descriptors: [Int32]
  ) {
    let isOutOfLine = bytes.count > MessageFrame.inlineLimit
    frame = MessageFrame(
      kind, id: id, token: token, length: bytes.count, isOutOfLine: isOutOfLine, descriptorCount: descriptors.count)
    memory = nil
    self.bytes = bytes
    self.descriptors = descriptors
  }

  /// Copies a long payload into memory, unless that has been done.
  ///
  /// - Complexity: O(*n*) in the bytes.
  mutating func prepare() throws(SystemError) {
    if frame.isOutOfLine, memory == nil { memory = try Self.memory(with: bytes) }
  }

  /// Gives the memory up again, if there is any.
  mutating func forgetMemory() { memory = nil }

  /// What the message costs until its receiver has taken it.
  var amount: MessageAccount.Amount { .init(outgoing: bytes.count, descriptors: frame.carriedDescriptors) }

  private static func memory(with bytes: [UInt8]) throws(SystemError) -> MessagePort.Descriptor {
    let (memory, canBeSealed) = try newMemory()
    var written = 0
    while written < bytes.count {
      let answer = try SystemCall.memoryWrite.makeUninterrupted {
        bytes.withUnsafeBytes {
          // One call takes less than two gigabytes.
          crl_message_memory_write(memory.number, $0.baseAddress.map { $0 + written }, min($0.count - written, 1 << 30))
        }
      }
      guard answer > 0 else { throw SystemError(call: SystemCall.memoryWrite.rawValue, number: ENOSPC) }
      written += Int(answer)
    }
    if canBeSealed { _ = try SystemCall.memoryControl.make { crl_message_memory_seal(memory.number) } }
    return memory
  }

  /// Makes empty memory: where `memfd_create` is refused, a file without a name on a file system in memory.
  private static func newMemory() throws(SystemError) -> (MessagePort.Descriptor, canBeSealed: Bool) {
    do throws(SystemError) {
      return (MessagePort.Descriptor(owning: try SystemCall.memoryCreate.make { crl_message_memory() }), true)
    } catch {
      guard [ENOSYS, EPERM, EACCES].contains(error.number) else { throw error }
      let file = crl_message_memory_file()
      guard file >= 0 else { throw error }
      return (MessagePort.Descriptor(owning: file), false)
    }
  }

  /// Sends the message whole, or throws: `EAGAIN` if there is no room.
  func send(on socket: MessagePort.Descriptor) throws(SystemError) {
    // The optimizer may not let go of who closes the descriptors before the call.
    defer { withExtendedLifetime((socket, memory)) {} }
    if let memory {
      try send(on: socket.number, [memory.number] + descriptors)
    } else {
      try send(on: socket.number, descriptors)
    }
  }

  private func send(on socket: Int32, _ descriptors: [Int32]) throws(SystemError) {
    // What lies in memory is not in the packet.
    let inPacket = frame.isOutOfLine ? 0 : frame.length
    _ = try SystemCall.sendMessage.makeUninterrupted {
      withUnsafeTemporaryAllocation(byteCount: MessageFrame.size, alignment: 8) { header in
        frame.encode(into: header)
        return bytes.withUnsafeBytes { payload in
          crl_message_send(
            socket, header.baseAddress, header.count, payload.baseAddress, inPacket, descriptors,
            Int32(descriptors.count))
        }
      }
    }
  }
}
