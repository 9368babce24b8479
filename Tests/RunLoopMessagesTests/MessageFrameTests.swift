// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import RunLoopMessages

@Suite("Message frames")
struct MessageFrameTests {
  private func decode(_ bytes: [UInt8]) -> Result<MessageFrame, MessageFrame.Malformation> {
    bytes.withUnsafeBytes { bytes in
      do throws(MessageFrame.Malformation) { return .success(try MessageFrame(decoding: bytes)) } catch {
        return .failure(error)
      }
    }
  }

  private static let frames = [
    MessageFrame(.request, id: -1, token: 1, length: 5),
    MessageFrame(.oneWay, id: .max, token: .max, length: 0, descriptorCount: 252),
    MessageFrame(.reply, id: 0, token: 1 << 40, length: 1 << 40, isOutOfLine: true, descriptorCount: 3),
    MessageFrame(.noReply, token: 2),
    MessageFrame(.rejection, id: 3, token: 0),
    MessageFrame(.confirmation, token: 9),
  ]

  @Test("an encoded frame decodes to the same frame", arguments: frames)
  func roundTrip(frame: MessageFrame) {
    let payload = [UInt8](repeating: 1, count: frame.isOutOfLine ? 0 : frame.length)
    #expect(decode(packet(frame, payload)) == .success(frame))
  }

  @Test("the layout of a frame is the documented one")
  func layout() {
    let frame = MessageFrame(.request, id: 0x0403_0201, token: 0x0807, length: 1, descriptorCount: 2)
    #expect(
      packet(frame, [9]) == [
        82, 76, 77, 80, 1, 1, 0, 0, 1, 2, 3, 4, 2, 0, 0, 0, 7, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9,
      ])
  }

  @Test("a frame with any one byte changed is rejected or means something else")
  func mutations() {
    let good = packet(MessageFrame(.confirmation, token: 9))
    for index in good.indices {
      for value in UInt8.min...UInt8.max where value != good[index] {
        var bytes = good
        bytes[index] = value
        guard case .success(let frame) = decode(bytes) else { continue }
        #expect(packet(frame) == bytes)
        #expect(index == 5 || (8..<12).contains(index) || (16..<24).contains(index))
      }
    }
    for count in 0..<good.count { #expect(decode(Array(good.prefix(count))) == .failure(.tooShort)) }
  }

  /// Decodes the fuzzer's inputs, in which a name that begins with `bad` marks an invalid packet.
  @Test("the fuzzer's corpus is decoded or rejected as its names indicate")
  func corpus() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("MessagePortCorpus")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    #expect(files.count >= 24)
    for file in files {
      let bytes = [UInt8](try Data(contentsOf: file))
      let name = file.lastPathComponent
      switch decode(bytes) {
      case .success(let frame):
        #expect(!name.hasPrefix("bad"), "\(name)")
        #expect(packet(frame, Array(bytes.dropFirst(MessageFrame.size))) == bytes, "\(name)")
      case .failure: #expect(name.hasPrefix("bad"), "\(name)")
      }
    }
  }
}
