// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Foundation
import RunLoopToolKit
import Testing

@Suite("Damaged and forged records", .ownThread) struct DamagedRecordTests {
  private func record() throws -> Data {
    let victim = try Victim(["last"])
    victim.kill()
    return try Data(contentsOf: URL(fileURLWithPath: try #require(victim.file)))
  }

  /// The sessions of two commands that read a record.
  private func sessions(_ bytes: Data) throws -> [Session] {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).record").path
    defer { for suffix in ["", ".pftrace", ".html"] { unlink(path + suffix) } }
    try bytes.write(to: URL(fileURLWithPath: path))
    return [
      runloop("postmortem", path, "--json"), runloop("postmortem", path),
      runloop("trace", "--from", path, "--output", path + ".pftrace"),
      runloop("trace", "--from", path, "--output", path + ".html"),
    ]
  }

  private func put<Value>(_ value: Value, at offset: Int?, _ bytes: inout Data) throws {
    let place = try #require(offset)
    withUnsafeBytes(of: value) { bytes.replaceSubrange(place..<place + $0.count, with: $0) }
  }

  @Test("a header that contradicts the layout is rejected in one sentence, whichever field is wrong")
  func layout() throws {
    let whole = try record()
    typealias Header = MemoryLayout<crl_header>
    let fields: [(String, Int?)] = [
      ("header_size", Header.offset(of: \.header_size)), ("face_count", Header.offset(of: \.face_count)),
      ("ring_count", Header.offset(of: \.ring_count)), ("record_count", Header.offset(of: \.record_count)),
      ("post_count", Header.offset(of: \.post_count)), ("face_offset", Header.offset(of: \.face_offset)),
      ("details_offset", Header.offset(of: \.details_offset)), ("mode_offset", Header.offset(of: \.mode_offset)),
      ("image_offset", Header.offset(of: \.image_offset)), ("ring_offset", Header.offset(of: \.ring_offset)),
      ("ring_size", Header.offset(of: \.ring_size)),
    ]
    for (name, offset) in fields {
      // Far away, misaligned, and zero.
      for value in [UInt32.max, 0x1000_0000, 4097, 0] {
        var bytes = whole
        try put(value, at: offset, &bytes)
        for session in try sessions(bytes) {
          #expect(session.status == 1, "\(name) \(value)")
          #expect(session.complaints.first?.contains("is damaged") == true, "\(name) \(value)")
          #expect(session.complaints.count == 1)
        }
      }
    }
  }

  @Test("rejecting a file does not unmap memory that another thread mapped meanwhile")
  func rejected() async {
    await #expect(processExitsWith: .success) {
      let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).record").path
      defer { unlink(path) }
      let size = Int(CRL_BOARD_SIZE)
      try Data().write(to: URL(fileURLWithPath: path))
      try #require(truncate(path, off_t(size)) == 0)
      // Another thread keeps mapping memory of the same size, which takes addresses that were just freed.
      let mapper = Foundation.Thread {
        while true {
          let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
          for _ in 0..<20 { memory?.storeBytes(of: 1, as: UInt8.self) }
          munmap(memory, size)
        }
      }
      mapper.start()
      for _ in 0..<20_000 { #expect(throws: RecordError.self) { try RecordFile(path: path) } }
    }
  }

  @Test("parts of a record that are cut off while it is read count as absent, and nothing crashes")
  func cutOff() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).record").path
    defer { unlink(path) }
    try record().write(to: URL(fileURLWithPath: path))
    let file = try RecordFile(path: path)
    let slot = try #require((0..<file.faceCount).first { file.face($0).thread != 0 })
    #expect(!file.records(slot).records.isEmpty)
    #expect(!file.images.isEmpty)
    #expect(truncate(path, off_t(MemoryLayout<crl_header>.size)) == 0)
    #expect(file.face(slot).thread == 0)
    #expect(file.name(slot).isEmpty)
    #expect(file.records(slot).records.isEmpty)
    #expect(file.images.allSatisfy { $0.end == 0 && $0.path.isEmpty })
    #expect(truncate(path, 0) == 0)
    #expect(file.header.magic == 0)
  }

  @Test("terminal control sequences are not printed, and appear as numeric escapes in JSON")
  func commands() throws {
    var bytes = try record()
    let details = try #require(MemoryLayout<crl_board>.offset(of: \.details))
    for slot in 0..<4 {
      let place = details + slot * MemoryLayout<crl_details>.size
      let name = Array("\u{1b}[2Jred\u{9b}1m\0".utf8)
      bytes.replaceSubrange(place..<place + name.count, with: name)
    }
    let said = try sessions(bytes)
    #expect(said.allSatisfy { $0.status == 0 })
    #expect(said[0].output.contains("\\u001b[2Jred"))
    #expect(said[1].output.contains("\u{fffd}[2Jred\u{fffd}1m"))
    #expect(!said[1].output.unicodeScalars.contains("\u{1b}"))
  }

  @Test("absurd numbers and times are read as harmless ones")
  func numbers() throws {
    var whole = try record()
    // No images, because naming addresses would take long.
    try put(UInt32(0), at: MemoryLayout<crl_header>.offset(of: \.used_images), &whole)
    let calibration = try #require(MemoryLayout<crl_header>.offset(of: \.calibration))
    let faces = try #require(MemoryLayout<crl_board>.offset(of: \.faces))
    let rings = try #require(MemoryLayout<crl_board>.offset(of: \.rings))
    var places: [(String, Int)] = []
    for (index, name) in ["ticks", "monotonic", "wall"].enumerated() {
      places.append(("first \(name)", calibration + 8 * index))
      places.append(("second \(name)", calibration + 24 + 8 * index))
    }
    // All fields of the faces that have had a loop, and of a record.
    for offset in stride(from: 0, to: 2 * MemoryLayout<crl_face>.size, by: 8) {
      places.append(("faces + \(offset)", faces + offset))
    }
    for index in [1, 5] {
      for offset in stride(from: 0, to: MemoryLayout<crl_record>.size, by: 8) {
        places.append(("record \(index) + \(offset)", rings + index * MemoryLayout<crl_record>.size + offset))
      }
    }
    for (name, place) in places {
      for value in [UInt64.max, UInt64(Int64.max), 1 << 63] {
        var bytes = whole
        try put(value, at: place, &bytes)
        for session in try sessions(bytes) { #expect(session.status == 0, "\(name) \(value): \(session.complaints)") }
      }
    }
  }
}
