// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Foundation
import RunLoopToolKit
import TestSupport
import Testing

/// A program that pretends the system has larger pages: it requests whole ones and rejects others, like a kernel with
/// that page size.
@Suite("Systems with larger pages", .ownThread) struct PageSizeTests {
  @Test("a tool changes a process's level and sees its records with larger pages", arguments: [4096, 16384, 65536])
  func level(page: Int) throws {
    let victim = try Victim(["pages", "\(page / 1024)"], program: "hang-victim", level: "off")
    let file = try TargetProcess(victim.number).openRecords()
    #expect(file.header.page_size == page)
    #expect(file.header.level == 0)
    let hold = try LevelHold(file, UInt32(CRL_RECORD.rawValue))
    defer { hold.release() }
    // More loops than there are faces in a page. Each raises its level and gets a ring on its next action, while the
    // main thread's loop does nothing.
    let threads = {
      (0..<file.faceCount).map { file.face($0) }.filter { $0.thread != 0 && $0.flags & UInt8(CRL_FACE_MAIN) == 0 }
    }
    waitUntil { threads().count == 40 }
    waitUntil { threads().allSatisfy { $0.level == UInt8(CRL_RECORD.rawValue) || $0.lost != 0 } }
    #expect(threads().allSatisfy { $0.lost == 0 })
    #expect(file.header.lost_loops == 0)
    #expect(file.lostLoops == 0)
  }

  @Test("if pages are larger than the header allows, a tool says that it cannot change the level")
  func tooLarge() throws {
    let victim = try Victim(["pages", "128"], program: "hang-victim", level: "off")
    let file = try TargetProcess(victim.number).openRecords()
    let error = #expect(throws: RecordError.self) { try LevelHold(file, UInt32(CRL_RECORD.rawValue)) }
    #expect(error?.description.contains("pages of 131072 bytes") == true)
    #expect(error?.description.contains("RUNLOOP_INSTRUMENTS=record") == true)
  }

  @Test("a process's file begins with its header, in a page of the largest size")
  func layout() {
    #expect(MemoryLayout<crl_header>.size <= Int(CRL_LARGEST_PAGE))
    #expect(MemoryLayout<crl_board>.offset(of: \.faces) == Int(CRL_LARGEST_PAGE))
    #expect(Int(CRL_BOARD_SIZE) % Int(CRL_LARGEST_PAGE) == 0)
  }

  @Test(
    "the kernel's samples are read from the offset it reports, whatever its page size",
    arguments: [4096, 16384, 65536])
  func samples(page: Int) {
    let size = crl_sampler_size(page, 65536)
    // The kernel maps one page plus a power of two of pages.
    #expect((size - page) % page == 0)
    #expect((size / page - 1).nonzeroBitCount == 1)
    let ring = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 64)
    defer { ring.deallocate() }
    ring.initializeMemory(as: UInt8.self, repeating: 0, count: size)
    // A sample with two addresses and without registers or stack, which wraps from the last 16 bytes to the
    // beginning.
    let words: [UInt64] = [9 | UInt64(8 * 6) << 48, 2, 0x1000, 0x2000, 0, 0]
    let whole = size - page
    let tail = UInt64(whole - 16)
    for (index, word) in words.enumerated() {
      ring.storeBytes(of: word, toByteOffset: page + (whole - 16 + 8 * index) % whole, as: UInt64.self)
    }
    // The kernel's data_head, data_tail, data_offset and data_size.
    let page0 = [tail + UInt64(8 * words.count), tail, UInt64(page), UInt64(whole)]
    for (index, word) in page0.enumerated() {
      ring.storeBytes(of: word, toByteOffset: 1024 + 8 * index, as: UInt64.self)
    }
    var sampler = crl_sampler(ring: ring, size: size, descriptor: -1)
    var sample = crl_sample()
    let stack = UnsafeMutableRawPointer.allocate(byteCount: Int(CRL_SAMPLE_STACK), alignment: 64)
    defer { stack.deallocate() }
    #expect(crl_sampler_next(&sampler, &sample, stack) == 1)
    #expect(sample.frames == 2)
    #expect([sample.addresses.0, sample.addresses.1] == [0x1000, 0x2000])
    #expect(crl_sampler_next(&sampler, &sample, stack) == 0)
  }
}
