// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// Reads packets from a socket, one at a time, whatever the other end has put into them.
///
/// Its room is used by one thread at a time.
final class MessageReader {
  enum Incoming {
    /// A message.
    case message(MessageFrame, [UInt8], [MessagePort.Descriptor])
    /// A message that cannot be taken.
    case rejected(MessageFrame, MessagePort.Rejection)
    /// A message that cannot be taken, and is left in the socket for its descriptors: there is no room for them, or
    /// whoever drops it closes them.
    case left(MessageFrame, MessagePort.Rejection)
    /// What nobody who keeps to the protocol sends.
    case malformed
    /// Nothing is there, or came in time, or a signal came.
    case nothing
    /// The other end is gone.
    case ended
  }

  let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: MessageFrame.size + MessageFrame.inlineLimit, alignment: 16)
  let numbers = UnsafeMutableBufferPointer<Int32>.allocate(capacity: CRL_MESSAGE_DESCRIPTORS)

  deinit {
    packet.deallocate()
    numbers.deallocate()
  }

  /// Reads the next packet, whose message has at most `limit` bytes.
  ///
  /// What came with it belongs to the result: descriptors that nobody takes are closed.
  ///
  /// - Parameter admits: Whether there is room for a message, before any is allocated; else why it is rejected.
  func next(
    on socket: MessagePort.Descriptor, blocks: Bool = false, limit: Int,
    admits: (MessageFrame) -> MessagePort.Rejection? = { _ in nil }
  ) throws(SystemError) -> Incoming {
    var count: Int32 = 0
    var truncation: Int32 = 0
    let size: Int32
    do throws(SystemError) {
      size = try receive(socket, blocks, &count, &truncation)
    } catch {
      switch error.number {
      case EAGAIN, EINTR: return .nothing
      default: throw error
      }
    }
    var descriptors: [MessagePort.Descriptor] = []
    if count > 0 {
      descriptors.reserveCapacity(Int(count))
      for number in numbers.prefix(Int(count)) { descriptors.append(MessagePort.Descriptor(owning: number, .apart)) }
    }
    // An empty packet looks the same, and nobody who keeps to the protocol sends one.
    guard size > 0 else { return .ended }
    guard let frame = frame(size, truncation) else { return .malformed }
    guard truncation & 2 == 0 else { return .rejected(frame, .descriptorsLost) }
    guard descriptors.count == frame.carriedDescriptors else { return .malformed }
    guard frame.length <= limit else { return .rejected(frame, .tooLarge) }
    if let rejection = admits(frame) { return .rejected(frame, rejection) }
    return try message(frame, descriptors)
  }

  /// The frame of the packet that lies here; nil: it is none.
  func frame(_ size: Int32, _ truncation: Int32) -> MessageFrame? {
    guard truncation & 1 == 0 else { return nil }
    return try? MessageFrame(decoding: UnsafeRawBufferPointer(start: packet.baseAddress, count: Int(size)))
  }

  /// The message of the packet that lies here.
  func message(
    _ frame: MessageFrame, _ descriptors: [MessagePort.Descriptor]
  ) throws(SystemError) -> Incoming {
    guard frame.isOutOfLine else { return .message(frame, payload(frame.length), descriptors) }
    return try readMemory(descriptors[0], frame, Array(descriptors.dropFirst()))
  }

  /// The payload of the packet that lies here.
  private func payload(_ length: Int) -> [UInt8] {
    // Without uninitialized room: making that is not specialized, and for no bytes it is room that all threads share.
    guard let start = packet.baseAddress, length > 0 else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start + MessageFrame.size, count: length))
  }

  /// An error that was kept for this socket comes once, in front of the packets that are there: they are read first.
  private func receive(
    _ socket: MessagePort.Descriptor, _ blocks: Bool, _ count: inout Int32, _ truncation: inout Int32
  ) throws(SystemError) -> Int32 {
    while true {
      do throws(SystemError) {
        return try SystemCall.receiveMessage.make {
          withExtendedLifetime(socket) {
            crl_message_receive(
              socket.number, blocks ? 1 : 0, packet.baseAddress, packet.count, numbers.baseAddress, &count, &truncation)
          }
        }
      } catch {
        guard error.number == ECONNRESET else { throw error }
      }
    }
  }

  /// Reads a payload from the memory that came with the packet.
  ///
  /// It must be memory, because reading anything else might block: sealed memory, or a file without a name on a file
  /// system in memory, which a sender passes whose system refuses `memfd_create`. The bytes of such a file may change
  /// while they are copied, which the copy does not notice and is not harmed by. The memory is as long as the frame
  /// says and without holes, which would cost the receiver what they did not cost the sender.
  private func readMemory(
    _ memory: MessagePort.Descriptor, _ frame: MessageFrame, _ descriptors: [MessagePort.Descriptor]
  ) throws(SystemError) -> Incoming {
    let isSealed = (try? SystemCall.memoryControl.make { crl_message_memory_is_sealed(memory.number) }) ?? 0
    // Closing memory waits for no other process.
    guard isSealed == 1 || crl_message_memory_is_nameless(memory.number) == 1, let memory = memory.moved() else {
      return .malformed
    }
    var status = crl_file_status()
    let hasStatus = try? SystemCall.fileStatus.make { crl_status_of(memory.number, &status) }
    guard hasStatus != nil else { return .rejected(frame, .noResources) }
    guard status.size == UInt64(frame.length), status.allocated >= status.size else { return .malformed }
    // An array that cannot be allocated would end the process. Another thread may take the room meanwhile, if hardly.
    let hasRoom = try? SystemCall.memoryAllocate.make { crl_message_can_allocate(frame.length + 4096) }
    guard hasRoom != nil else { return .rejected(frame, .noResources) }
    var failure: SystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: frame.length) { room, read in
      while read < frame.length {
        do throws(SystemError) {
          let start = read
          let answer = try SystemCall.memoryRead.makeUninterrupted {
            crl_message_memory_read(
              memory.number, room.baseAddress.map { $0 + start }, min(frame.length - start, 1 << 30), UInt64(start))
          }
          guard answer > 0 else { return }
          read += Int(answer)
        } catch {
          failure = error
          return
        }
      }
    }
    if failure != nil { return .rejected(frame, .noResources) }
    return bytes.count == frame.length ? .message(frame, bytes, descriptors) : .malformed
  }
}
