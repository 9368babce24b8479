// SPDX-License-Identifier: Apache-2.0

import CLibCurl

/// Decodes one content coding, as far as it is asked to.
///
/// The loader's thread.
final class CodingDecoder {
  enum Failure: Swift.Error, Equatable {
    case broken
    case memory
  }

  private let coding: ContentCoding
  private let isStrict: Bool
  private var decoder: OpaquePointer?
  /// What was fed and is not decoded yet, from `position` on.
  private var input: [UInt8] = []
  private var position = 0
  private var hasEnded = false
  /// Whether there was anything to decode.
  private(set) var hasBegun = false
  /// Whether the library may have more to write without more input.
  private var mayHaveMore = false
  /// Whether one whole member or frame was decoded, and what follows has brought nothing.
  private var isBeyondEnd = false
  /// The first bytes of the current member or frame, at most as many as its magic number has.
  private var memberStart: [UInt8] = []
  /// Whether what follows the end is dropped.
  private(set) var dropsRest = false
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)

  /// - Parameter isStrict: Whether bytes that follow the end are an error.
  init(_ coding: ContentCoding, isStrict: Bool = false) {
    self.coding = coding
    self.isStrict = isStrict
  }

  deinit {
    if let decoder { clc_decoder_free(decoder) }
    buffer.deallocate()
  }

  /// Whether the body was complete; one of no bytes at all is, where something else says that it has ended.
  var isComplete: Bool { hasEnded || !hasBegun || isBeyondEnd && !isStrict && !isWithinMember }
  /// Whether the input ends within a member or frame that has a magic number.
  ///
  /// One byte of the number is not enough: it may be anything.
  private var isWithinMember: Bool { memberStart.count >= 2 && coding.magic.starts(with: memberStart) }
  /// Whether bytes followed the end that are no member of their own.
  var hasRest: Bool { dropsRest || isBeyondEnd && !hasEnded }

  /// Leaves bytes to be decoded.
  func feed(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty, !dropsRest else { return }
    hasBegun = true
    if position == input.count {
      input.removeAll(keepingCapacity: true)
      position = 0
    }
    input.append(contentsOf: bytes)
  }

  /// The next decoded bytes, which are valid until the next call; nil if there is nothing more without further input.
  func next() throws(Failure) -> UnsafeRawBufferPointer? {
    guard try open() else { return nil }
    while position < input.count || mayHaveMore {
      if hasEnded, try !beginMember() { return nil }
      var taken = input.count - position
      var made = buffer.count
      let answer = input.withUnsafeBytes { bytes in
        clc_decode(
          decoder, bytes.baseAddress?.advanced(by: position).assumingMemoryBound(to: UInt8.self), &taken,
          buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), &made)
      }
      let missing = coding.magic.count - memberStart.count
      if missing > 0 { memberStart += input[position..<position + taken].prefix(missing) }
      position += taken
      mayHaveMore = made == buffer.count
      switch Int(answer) {
      case Int(clc_decode_more): if taken == 0, made == 0 { return nil }
      case Int(clc_decode_end):
        hasEnded = true
        isBeyondEnd = true
        mayHaveMore = false
      case Int(clc_decode_no_memory): throw .memory
      default:
        if made > 0 { isBeyondEnd = false }
        try drop()
        return nil
      }
      guard made > 0 else { continue }
      if !hasEnded { isBeyondEnd = false }
      return UnsafeRawBufferPointer(rebasing: buffer[..<made])
    }
    return nil
  }

  /// Whether the format is known and the library ready.
  private func open() throws(Failure) -> Bool {
    if decoder != nil { return true }
    guard position < input.count else { return false }
    var format = coding.format
    if coding == .deflate {
      guard input.count >= 2 else { return false }
      // A head of zlib: the method is 8, and the two bytes are a multiple of 31. Some servers send none.
      let isZlib = input[0] & 0x0f == 8 && (UInt(input[0]) << 8 | UInt(input[1])) % 31 == 0
      if !isZlib { format = Int32(clc_raw_deflate) }
    }
    decoder = clc_decoder_make(format)
    guard decoder != nil else { throw .memory }
    return true
  }

  /// What follows the end: a gzip file may have further members and zstd further frames; zeros may follow gzip.
  private func beginMember() throws(Failure) -> Bool {
    switch coding {
    case .gzip where input[position...].allSatisfy { $0 == 0 }:
      position = input.count
      return false
    case .gzip where input[position] != 0x1f, .deflate, .brotli:
      try drop()
      return false
    case .gzip, .zstd: break
    }
    guard clc_decoder_reset(decoder) != 0 else { throw .broken }
    hasEnded = false
    memberStart = []
    return true
  }

  /// Passes over bytes that cannot be decoded, if they follow the end and have brought nothing.
  private func drop() throws(Failure) {
    guard isBeyondEnd, !isStrict else { throw .broken }
    dropsRest = true
    hasEnded = true
    mayHaveMore = false
    position = input.count
  }
}

/// Decodes all codings of a body, the last that was applied first.
final class Decoder {
  private let stages: [CodingDecoder]
  /// How many codings one above the other are believed to be meant.
  static let mostStages = 4
  /// How many bytes all codings together write before everybody else takes a turn: a few bytes may stand for gigabytes.
  static let mostInTurn = 4 << 20
  private var written = 0

  /// - Parameters:
  ///   - codings: In the order in which they were applied.
  ///   - isStrict: Whether bytes that follow the end are an error.
  init(_ codings: [ContentCoding], isStrict: Bool = false) {
    stages = codings.reversed().map { CodingDecoder($0, isStrict: isStrict) }
  }

  var isComplete: Bool { stages.allSatisfy(\.isComplete) }
  var hasBegun: Bool { stages[0].hasBegun }
  /// Whether bytes were passed over that follow the end.
  var hasRest: Bool { stages.contains(where: \.hasRest) }

  func feed(_ bytes: UnsafeRawBufferPointer) { stages[0].feed(bytes) }

  /// Whether ``next()`` has returned nil because everybody else is to take a turn.
  var wantsTurn: Bool { written >= Self.mostInTurn }

  /// Everybody else has taken a turn.
  func beginTurn() { written = 0 }

  func next() throws(CodingDecoder.Failure) -> UnsafeRawBufferPointer? { try next(stages.count - 1) }

  private func next(_ stage: Int) throws(CodingDecoder.Failure) -> UnsafeRawBufferPointer? {
    while !wantsTurn {
      if let bytes = try stages[stage].next() {
        written += bytes.count
        return bytes
      }
      guard stage > 0, let bytes = try next(stage - 1) else { return nil }
      stages[stage].feed(bytes)
    }
    return nil
  }
}
