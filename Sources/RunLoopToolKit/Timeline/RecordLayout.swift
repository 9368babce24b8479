// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The layout of records, which is fixed within a version.
///
/// The header of a file or another process is compared with the layout but never used in its place, because it is
/// untrusted data.
enum RecordLayout {
  static let faces = offset(of: \.faces)
  static let details = offset(of: \.details)
  static let modes = offset(of: \.modes)
  static let images = offset(of: \.images)
  static let rings = offset(of: \.rings)

  /// The maximum value of a count, which is the number of bits that causes use for record numbers.
  static let most: UInt64 = 1 << UInt64(CRL_CAUSE_SLOT_SHIFT)

  private static func offset(of part: PartialKeyPath<crl_board>) -> Int {
    guard let offset = MemoryLayout<crl_board>.offset(of: part) else { fatalError("a part of C memory has an offset") }
    return offset
  }

  /// Returns whether a header matches this layout.
  static func isKept(by header: crl_header) -> Bool {
    let said = [
      header.version, header.header_size, header.face_count, header.ring_count, header.record_count, header.post_count,
      header.face_offset, header.details_offset, header.mode_offset, header.image_offset, header.ring_offset,
      header.ring_size,
    ]
    let known = [
      Int(CRL_LAYOUT_VERSION), MemoryLayout<crl_header>.size, Int(CRL_FACES), Int(CRL_RINGS), Int(CRL_RECORDS),
      Int(CRL_POSTS), faces, details, modes, images, rings, Int(CRL_RING_SIZE),
    ]
    return header.magic == CRL_MAGIC && said.map { Int($0) } == known
  }
}
