// SPDX-License-Identifier: Apache-2.0

import CLibCurl

/// Decodes one content coding by zlib, as far as it is asked to.
///
/// The loader's thread.
final class Inflater {
  enum Failure: Swift.Error, Equatable {
    case broken
    case memory
  }

  private let isGzip: Bool
  private var inflater: OpaquePointer?
  /// What was fed and is not decoded yet, from `position` on.
  private var input: [UInt8] = []
  private var position = 0
  private var hasEnded = false
  /// Whether there was anything to decode.
  private(set) var hasBegun = false
  /// Whether zlib may have more to write without more input.
  private var mayHaveMore = false
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)

  init(gzip: Bool) { isGzip = gzip }

  deinit {
    if let inflater { clc_inflater_free(inflater) }
    buffer.deallocate()
  }

  /// Whether a coding is one that this decodes.
  static func decodes(_ coding: String) -> Bool { ["gzip", "x-gzip", "deflate"].contains(coding) }

  /// Whether the body was complete; one of no bytes at all is, where something else says that it has ended.
  var isComplete: Bool { hasEnded || !hasBegun }

  /// Leaves bytes to be decoded.
  func feed(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
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
        clc_inflate(
          inflater, bytes.baseAddress?.advanced(by: position).assumingMemoryBound(to: UInt8.self), &taken,
          buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), &made)
      }
      position += taken
      mayHaveMore = made == buffer.count
      switch Int(answer) {
      case Int(clc_inflate_more): if taken == 0, made == 0 { return nil }
      case Int(clc_inflate_end):
        hasEnded = true
        mayHaveMore = false
      case Int(clc_inflate_no_memory): throw .memory
      default: throw .broken
      }
      if made > 0 { return UnsafeRawBufferPointer(rebasing: buffer[..<made]) }
    }
    return nil
  }

  /// Whether the format is known and zlib ready.
  private func open() throws(Failure) -> Bool {
    if inflater != nil { return true }
    guard position < input.count else { return false }
    var format = clc_gzip
    if !isGzip {
      guard input.count >= 2 else { return false }
      // A head of zlib: the method is 8, and the two bytes are a multiple of 31. Some servers send none.
      let isZlib = input[0] & 0x0f == 8 && (UInt(input[0]) << 8 | UInt(input[1])) % 31 == 0
      format = isZlib ? clc_zlib : clc_raw_deflate
    }
    inflater = clc_inflater_make(Int32(format))
    guard inflater != nil else { throw .memory }
    return true
  }

  /// What follows the end: a gzip file may have further members, and zeros may follow it.
  private func beginMember() throws(Failure) -> Bool {
    guard isGzip else { throw .broken }
    if input[position...].allSatisfy({ $0 == 0 }) {
      position = input.count
      return false
    }
    guard input[position] == 0x1f, clc_inflater_reset(inflater) != 0 else { throw .broken }
    hasEnded = false
    return true
  }
}

/// Decodes all codings of a body, the last that was applied first.
final class Decoder {
  private let stages: [Inflater]
  /// How many codings one above the other are believed to be meant.
  static let mostStages = 4
  /// How many bytes all codings together write before everybody else takes a turn: a few bytes may stand for gigabytes.
  static let mostInTurn = 4 << 20
  private var written = 0

  /// - Parameter codings: In the order in which they were applied, each one that ``Inflater/decodes(_:)``.
  init(_ codings: [String]) { stages = codings.reversed().map { Inflater(gzip: $0 != "deflate") } }

  var isComplete: Bool { stages.allSatisfy(\.isComplete) }
  var hasBegun: Bool { stages[0].hasBegun }

  func feed(_ bytes: UnsafeRawBufferPointer) { stages[0].feed(bytes) }

  /// Whether ``next()`` has returned nil because everybody else is to take a turn.
  var wantsTurn: Bool { written >= Self.mostInTurn }

  /// Everybody else has taken a turn.
  func beginTurn() { written = 0 }

  func next() throws(Inflater.Failure) -> UnsafeRawBufferPointer? { try next(stages.count - 1) }

  private func next(_ stage: Int) throws(Inflater.Failure) -> UnsafeRawBufferPointer? {
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
