// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// A message to send: its frame, and its payload, which is sent in the packet or in memory that is passed as a
/// descriptor.
///
/// The memory is created just before the message is sent, by ``prepare()``, so queued messages consist only of bytes.
struct MessageContent: Sendable {
  var frame: MessageFrame
  private let bytes: [UInt8]
  private var memory: MessagePort.Descriptor?
  private let descriptors: [Int32]

  init(_ kind: MessageFrame.Kind, id: Int32 = 0, token: UInt64) {
    frame = MessageFrame(kind, id: id, token: token)
    bytes = []
    memory = nil
    descriptors = []
  }

  /// Creates a message; the caller owns the descriptors, and must keep them open until the message was sent.
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

  /// Copies a long payload into memory, unless that was already done.
  ///
  /// - Complexity: O(*n*) in the number of bytes.
  mutating func prepare() throws(SystemError) {
    if frame.isOutOfLine, memory == nil { memory = try Self.memory(with: bytes) }
  }

  mutating func forgetMemory() { memory = nil }

  /// The amount that the message is charged until its receiver has read it.
  var amount: MessageAccount.Amount { .init(outgoing: bytes.count, descriptors: frame.carriedDescriptors) }

  private static func memory(with bytes: [UInt8]) throws(SystemError) -> MessagePort.Descriptor {
    let (memory, canBeSealed) = try newMemory()
    var written = 0
    while written < bytes.count {
      let answer = try SystemCall.memoryWrite.makeUninterrupted {
        bytes.withUnsafeBytes {
          // A single call writes less than two gigabytes.
          crl_message_memory_write(memory.number, $0.baseAddress.map { $0 + written }, min($0.count - written, 1 << 30))
        }
      }
      guard answer > 0 else { throw SystemError(call: SystemCall.memoryWrite.rawValue, number: ENOSPC) }
      written += Int(answer)
    }
    if canBeSealed { _ = try SystemCall.memoryControl.make { crl_message_memory_seal(memory.number) } }
    return memory
  }

  /// Creates empty memory or, if `memfd_create` is denied, an unnamed file in a memory file system.
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

  /// Sends the whole message, or throws; `EAGAIN` means that there is no room.
  func send(on socket: MessagePort.Descriptor) throws(SystemError) {
    // Keep the owners of the descriptors alive until the call returns.
    defer { withExtendedLifetime((socket, memory)) {} }
    if let memory {
      try send(on: socket.number, [memory.number] + descriptors)
    } else {
      try send(on: socket.number, descriptors)
    }
  }

  private func send(on socket: Int32, _ descriptors: [Int32]) throws(SystemError) {
    // A payload in memory is not part of the packet.
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
