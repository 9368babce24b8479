// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import CRunLoopSystem

/// The published state of a process's loops.
package protocol LoopFaces: AnyObject {
  var faceCount: Int { get }
  func face(_ slot: Int) -> crl_face
  /// The record with a number, if it still exists.
  func record(_ number: UInt64, of slot: Int) -> crl_record?
  /// The post with a sequence number, if it still exists.
  func post(_ sequence: UInt64, of slot: Int) -> crl_post?
  /// The name of the thread's object, or an empty string.
  func name(_ slot: Int) -> String
  func mode(_ index: UInt8) -> String?
  /// Converts ticks of records to nanoseconds.
  func nanoseconds(_ ticks: UInt64) -> Int64
  /// The timer or descriptor that was last served late, or nil; recorded at the level watch and above.
  func lateService(_ slot: Int) -> LateService?
}

/// A timer that fired well after its date and tolerance, or a descriptor that was ready for long before it was served.
package struct LateService: Sendable, Hashable {
  /// The number of such timers and descriptors in the loop so far.
  package var count: UInt64
  /// The lateness in nanoseconds; of a descriptor, its upper bound.
  package var late: Int64
  /// The function that is called.
  package var code: UInt64
  package var isDescriptor: Bool

  package init(count: UInt64, late: Int64, code: UInt64, isDescriptor: Bool = false) {
    (self.count, self.late, self.code, self.isDescriptor) = (count, late, code, isDescriptor)
  }

  /// Reads it from a face's details; fails if there is none.
  package init?(_ details: crl_details) {
    guard details.late_count != 0 else { return nil }
    (count, late, code) = (details.late_count, Int64(clamping: details.late), details.late_code)
    isDescriptor = details.late_descriptor != 0
  }
}

/// The published state of this process's loops.
final class OwnFaces: LoopFaces {
  private let board: UnsafePointer<crl_board>
  private var first: crl_times
  /// The number of nanoseconds per tick.
  private var rate = 1.0
  private var isCalibrated = false

  /// Fails if no loop has been created.
  init?() {
    guard let board = crl_board_get() else { return nil }
    self.board = board
    first = crl_times(ticks: crl_ticks(), monotonic: crl_monotonic_nanoseconds(), wall: 0)
  }

  /// The address of a part according to the layout, because the offsets in the header may be another process's.
  private func place(_ part: PartialKeyPath<crl_board>, _ index: Int, _ size: Int) -> UnsafeRawPointer {
    guard let offset = MemoryLayout<crl_board>.offset(of: part) else { fatalError("a part of C memory has an offset") }
    return UnsafeRawPointer(board) + offset + index * size
  }

  private var header: crl_header { UnsafeRawPointer(board).load(as: crl_header.self) }

  var faceCount: Int { Int(min(header.used_faces, UInt32(CRL_FACES))) }

  func face(_ slot: Int) -> crl_face {
    var face = place(\.faces, slot, MemoryLayout<crl_face>.size).load(as: crl_face.self)
    // Clamped to the number of bits that causes use for record numbers, which also prevents overflows.
    let most: UInt64 = 1 << UInt64(CRL_CAUSE_SLOT_SHIFT)
    for count in [\crl_face.number, \.posted, \.served, \.waits, \.sleeps] {
      face[keyPath: count] = min(face[keyPath: count], most)
    }
    return face
  }

  private func ring(_ slot: Int) -> UnsafeRawPointer? {
    slot < Int(CRL_RINGS) ? place(\.rings, slot, Int(CRL_RING_SIZE)) : nil
  }

  func record(_ number: UInt64, of slot: Int) -> crl_record? {
    guard number != 0, let ring = ring(slot) else { return nil }
    let place = ring + Int(number % UInt64(CRL_RECORDS)) * MemoryLayout<crl_record>.size
    var record = crl_record()
    let isWhole = crl_numbered_copy(place, &record, MemoryLayout<crl_record>.size) != 0
    return isWhole && record.number == number ? record : nil
  }

  func post(_ sequence: UInt64, of slot: Int) -> crl_post? {
    guard sequence != 0, let ring = ring(slot) else { return nil }
    let posts = ring + Int(CRL_RECORDS) * MemoryLayout<crl_record>.size
    let place = posts + Int(sequence % UInt64(CRL_POSTS)) * MemoryLayout<crl_post>.size
    var post = crl_post()
    let isWhole = crl_numbered_copy(place, &post, MemoryLayout<crl_post>.size) != 0
    return isWhole && post.sequence == sequence ? post : nil
  }

  func lateService(_ slot: Int) -> LateService? {
    LateService(place(\.details, slot, MemoryLayout<crl_details>.size).load(as: crl_details.self))
  }

  func name(_ slot: Int) -> String { text(place(\.details, slot, MemoryLayout<crl_details>.size), 256) }

  func mode(_ index: UInt8) -> String? {
    guard Int(index) < min(Int(header.used_modes), Int(CRL_MODES)) else { return nil }
    return text(place(\.modes, Int(index), MemoryLayout<crl_mode_name>.size), 128)
  }

  func nanoseconds(_ ticks: UInt64) -> Int64 {
    if !isCalibrated { calibrate() }
    return first.monotonic &+ Int64(Double(Int64(bitPattern: ticks &- first.ticks)) * rate)
  }

  /// Measures the duration of a tick, once enough time has passed.
  private func calibrate() {
    // The clock is chosen before the first record, which may be after this object was created, so its times take
    // precedence.
    let earlier = crl_times_first()
    if earlier.ticks != 0 { first = earlier }
    let now = crl_monotonic_nanoseconds()
    let ticks = crl_ticks()
    guard ticks > first.ticks else { return }
    let end = crl_times(ticks: ticks, monotonic: now, wall: 0)
    let isProcessors = header.clock == UInt32(CRL_CLOCK_PROCESSOR)
    rate = isProcessors ? crl_tick_nanoseconds(first, end, header.frequency) : 1
    isCalibrated = earlier.ticks != 0 && now - first.monotonic > 1_000_000_000
  }

  private func text(_ place: UnsafeRawPointer, _ capacity: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: place, count: capacity).prefix { $0 != 0 }, as: UTF8.self)
  }
}
