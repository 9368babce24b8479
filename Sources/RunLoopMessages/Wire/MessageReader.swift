// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// Reads packets from a socket, one at a time, regardless of their contents, using buffers for one thread at a time.
final class MessageReader {
  enum Incoming {
    case message(MessageFrame, [UInt8], [MessagePort.Descriptor])
    case rejected(MessageFrame, MessagePort.Rejection)
    /// A message that was rejected but is left in the socket, either because there is no room for its descriptors or
    /// because discarding it would close them on this thread.
    case left(MessageFrame, MessagePort.Rejection)
    /// A packet that violates the protocol.
    case malformed
    /// No packet has arrived, at all or in time, or a signal interrupted the call.
    case nothing
    /// The other end has closed the connection.
    case ended
  }

  let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: MessageFrame.size + MessageFrame.inlineLimit, alignment: 16)
  let numbers = UnsafeMutableBufferPointer<Int32>.allocate(capacity: CRL_MESSAGE_DESCRIPTORS)

  deinit {
    packet.deallocate()
    numbers.deallocate()
  }

  /// Reads the next packet, whose message may have at most `limit` bytes.
  ///
  /// The descriptors that arrived with it belong to the result and are closed unless they are taken.
  ///
  /// - Parameter admits: Called before anything is allocated. Returns the reason to reject the message, or `nil` to
  ///   accept it.
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
    // An empty packet looks the same, but violates the protocol.
    guard size > 0 else { return .ended }
    guard let frame = frame(size, truncation) else { return .malformed }
    guard truncation & 2 == 0 else { return .rejected(frame, .descriptorsLost) }
    guard descriptors.count == frame.carriedDescriptors else { return .malformed }
    guard frame.length <= limit else { return .rejected(frame, .tooLarge) }
    if let rejection = admits(frame) { return .rejected(frame, rejection) }
    return try message(frame, descriptors)
  }

  /// Returns the frame of the packet in the buffer, or `nil` if it is malformed.
  func frame(_ size: Int32, _ truncation: Int32) -> MessageFrame? {
    guard truncation & 1 == 0 else { return nil }
    return try? MessageFrame(decoding: UnsafeRawBufferPointer(start: packet.baseAddress, count: Int(size)))
  }

  func message(
    _ frame: MessageFrame, _ descriptors: [MessagePort.Descriptor]
  ) throws(SystemError) -> Incoming {
    guard frame.isOutOfLine else { return .message(frame, payload(frame.length), descriptors) }
    return try readMemory(descriptors[0], frame, Array(descriptors.dropFirst()))
  }

  private func payload(_ length: Int) -> [UInt8] {
    // The initializer for uninitialized capacity is not specialized, and for no bytes its storage is shared by all
    // threads.
    guard let start = packet.baseAddress, length > 0 else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start + MessageFrame.size, count: length))
  }

  /// Receives a packet, skipping a pending error of the socket, which is reported once before the packets that have
  /// arrived.
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

  /// Reads a payload from the memory that arrived with the packet.
  ///
  /// It must be sealed memory, or an unnamed file in a memory file system, which is sent by systems that deny
  /// `memfd_create`; reading anything else could block. Such a file may change while it is copied, which does no harm.
  /// The memory must have exactly the announced size and no holes, because holes would cost the receiver memory that
  /// they did not cost the sender.
  private func readMemory(
    _ memory: MessagePort.Descriptor, _ frame: MessageFrame, _ descriptors: [MessagePort.Descriptor]
  ) throws(SystemError) -> Incoming {
    let isSealed = (try? SystemCall.memoryControl.make { crl_message_memory_is_sealed(memory.number) }) ?? 0
    // Closing memory does not depend on another process.
    guard isSealed == 1 || crl_message_memory_is_nameless(memory.number) == 1, let memory = memory.moved() else {
      return .malformed
    }
    var status = crl_file_status()
    let hasStatus = try? SystemCall.fileStatus.make { crl_status_of(memory.number, &status) }
    guard hasStatus != nil else { return .rejected(frame, .noResources) }
    guard status.size == UInt64(frame.length), status.allocated >= status.size else { return .malformed }
    // Check first, because a failed array allocation ends the process. Another thread taking the memory in between is
    // unlikely.
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
