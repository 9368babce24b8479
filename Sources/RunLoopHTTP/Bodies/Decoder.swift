// SPDX-License-Identifier: Apache-2.0

import CLibCurl

/// Decodes one content coding incrementally, on the loader's thread.
final class CodingDecoder {
  enum Failure: Swift.Error, Equatable {
    case broken
    case memory
  }

  private let coding: ContentCoding
  private let isStrict: Bool
  private var decoder: OpaquePointer?
  /// The input, whose bytes from `position` on have not been decoded yet.
  private var input: [UInt8] = []
  private var position = 0
  private var hasEnded = false
  private(set) var hasBegun = false
  /// Whether the library may produce more output without more input.
  private var mayHaveMore = false
  /// Whether a complete member or frame was decoded and the data after it has produced no output.
  private var isBeyondEnd = false
  /// The first bytes of the current member or frame, at most as many as the magic number has.
  private var memberStart: [UInt8] = []
  /// Whether the data after the end is dropped.
  private(set) var dropsRest = false
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)

  /// - Parameter isStrict: Whether extra bytes after the end are an error.
  init(_ coding: ContentCoding, isStrict: Bool = false) {
    self.coding = coding
    self.isStrict = isStrict
  }

  deinit {
    if let decoder { clc_decoder_free(decoder) }
    buffer.deallocate()
  }

  /// Whether the body was complete, which an empty body is if its end is known from elsewhere.
  var isComplete: Bool { hasEnded || !hasBegun || isBeyondEnd && !isStrict && !isWithinMember }
  /// Whether the input ends inside a member or frame that has a magic number.
  ///
  /// At least two bytes have to match, because a single byte may be anything.
  private var isWithinMember: Bool { memberStart.count >= 2 && coding.magic.starts(with: memberStart) }
  /// Whether the end is followed by extra bytes that are not another member.
  var hasRest: Bool { dropsRest || isBeyondEnd && !hasEnded }

  /// Adds input to decode.
  func feed(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty, !dropsRest else { return }
    hasBegun = true
    if position == input.count {
      input.removeAll(keepingCapacity: true)
      position = 0
    }
    input.append(contentsOf: bytes)
  }

  /// Returns the next decoded bytes, which are valid until the next call, or nil if more input is needed.
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

  /// Creates the decoder, or returns false until there is enough input to know the format.
  private func open() throws(Failure) -> Bool {
    if decoder != nil { return true }
    guard position < input.count else { return false }
    var format = coding.format
    if coding == .deflate {
      guard input.count >= 2 else { return false }
      // A zlib header has method 8, and its two bytes are a multiple of 31. Some servers send raw deflate without one.
      let isZlib = input[0] & 0x0f == 8 && (UInt(input[0]) << 8 | UInt(input[1])) % 31 == 0
      if !isZlib { format = Int32(clc_raw_deflate) }
    }
    decoder = clc_decoder_make(format)
    guard decoder != nil else { throw .memory }
    return true
  }

  /// Handles data after the end: further gzip members or zstd frames, or zero padding after gzip.
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

  /// Drops bytes that cannot be decoded, if they follow the end and produced no output.
  private func drop() throws(Failure) {
    guard isBeyondEnd, !isStrict else { throw .broken }
    dropsRest = true
    hasEnded = true
    mayHaveMore = false
    position = input.count
  }
}

/// Decodes all codings of a body, in the reverse order of their application.
final class Decoder {
  private let stages: [CodingDecoder]
  /// The maximum number of nested codings that is accepted.
  static let mostStages = 4
  /// The output size in bytes after which other transfers get a turn, because a few bytes may expand to gigabytes.
  static let mostInTurn = 4 << 20
  private var written = 0

  /// - Parameters:
  ///   - codings: The codings in the order they were applied.
  ///   - isStrict: Whether extra bytes after the end are an error.
  init(_ codings: [ContentCoding], isStrict: Bool = false) {
    stages = codings.reversed().map { CodingDecoder($0, isStrict: isStrict) }
  }

  var isComplete: Bool { stages.allSatisfy(\.isComplete) }
  var hasBegun: Bool { stages[0].hasBegun }
  /// Whether extra bytes after the end were dropped.
  var hasRest: Bool { stages.contains(where: \.hasRest) }

  func feed(_ bytes: UnsafeRawBufferPointer) { stages[0].feed(bytes) }

  /// Whether ``next()`` returned nil to let other transfers run.
  var wantsTurn: Bool { written >= Self.mostInTurn }

  /// Begins a new turn, after other transfers have run.
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
