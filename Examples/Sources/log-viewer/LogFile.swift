// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopTransactions
import Synchronization

/// A file that is read in parts while other processes write it.
///
/// Can be used from any thread. The file is never mapped into memory, because truncating it would then crash the
/// process.
final class LogFile: Sendable {
  /// The reason why a file cannot be shown.
  struct Failure: Error, CustomStringConvertible {
    let path: String
    let reason: String
    var description: String { "\(path): \(reason)" }
  }

  /// Identifies a file on a disk.
  struct Identity: Hashable, Sendable {
    let device: UInt
    let number: UInt
  }

  let path: String
  let identity: Identity
  private let descriptor: Int32
  private let index = Mutex(LineIndex())

  /// The number of bytes read of a line, beyond which it is not shown.
  static let longestLine = 8192
  private static let blockSize = 262_144

  init(path: String) throws(Failure) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw Failure(path: path, reason: String(cString: strerror(errno))) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw Failure(path: path, reason: "is not a file that can be read again")
    }
    identity = Identity(device: UInt(status.st_dev), number: UInt(status.st_ino))
  }

  deinit { close(descriptor) }

  /// Returns the file that has the path now, or nil if there is none.
  static func identity(of path: String) -> Identity? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Identity(device: UInt(status.st_dev), number: UInt(status.st_ino))
  }

  /// The number of known lines.
  var lineCount: Int { index.withLock { $0.lineCount } }

  /// The number of bytes indexed so far, and the size of the file.
  var progress: (read: Int, total: Int) { (index.withLock { $0.byteCount }, size) }

  private var size: Int {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Whether the file has become shorter than the part that was read.
  var isTruncated: Bool { size < index.withLock { $0.byteCount } }

  /// Indexes further lines, up to a number of bytes.
  ///
  /// Must be called by one thread at a time.
  ///
  /// - Returns: Whether the end was reached.
  func findLines(upTo limit: Int, _ cancellation: Cancellation) -> Bool {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 16)
    defer { buffer.deallocate() }
    var rest = limit
    while rest > 0, !cancellation.isCancelled {
      let count = read(at: index.withLock { $0.byteCount }, into: buffer)
      guard count > 0 else { return true }
      index.withLock { $0.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
      rest -= count
    }
    return false
  }

  /// Returns the bytes of a line without its end, or none if there is no such line.
  func line(_ number: Int) -> [UInt8] {
    let (mark, range) = index.withLock { index in
      let position = index.mark(before: number)
      return (index.marks[position], index.range(of: position))
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 16)
    defer { buffer.deallocate() }
    var skip = number - mark.line
    var offset = range.lowerBound
    var line: [UInt8] = []
    while offset < range.upperBound, line.count < Self.longestLine {
      let count = min(read(at: offset, into: buffer), range.upperBound - offset)
      guard count > 0 else { break }
      var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      offset += count
      while !rest.isEmpty {
        let end = rest.firstIndex(of: 0x0A, in: 0..<rest.count)
        if skip == 0 { line += rest[..<min(end ?? rest.count, Self.longestLine - line.count)] }
        guard let end else { break }
        if skip == 0 { return line }
        skip -= 1
        rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
      }
    }
    return line
  }

  private func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
      if count >= 0 || errno != EINTR { return max(0, count) }
    }
  }
}

// Search.
extension LogFile {
  /// The maximum number of bytes searched between two marks; a longer range is a single line.
  private static let longestSearch = 4 << 20

  /// Finds the next line that contains a text, wrapping around at the end or the beginning.
  ///
  /// - Parameters:
  ///   - text: The text to search for.
  ///   - line: The line after which, or before which, the search begins. That line itself is searched last.
  ///   - forward: The direction of the search.
  /// - Returns: The line's number, or nil if there is none or the search was cancelled.
  func find(_ text: String, from line: Int, forward: Bool, _ cancellation: Cancellation) -> Int? {
    let count = index.withLock { $0.marks.count }
    let start = index.withLock { $0.mark(before: line) }
    // The starting part is searched first in the direction of the search, and again at the end for the rest.
    for step in 0...count {
      guard !cancellation.isCancelled else { return nil }
      let position = ((start + (forward ? step : -step)) % count + count) % count
      var found = matches(text, mark: position)
      if step == 0 { found.removeAll { forward ? $0 <= line : $0 >= line } }
      if step == count { found.removeAll { forward ? $0 > line : $0 < line } }
      if let number = forward ? found.first : found.last { return number }
    }
    return nil
  }

  /// Returns the lines with a text from a mark to the next.
  private func matches(_ text: String, mark position: Int) -> [Int] {
    let (mark, range) = index.withLock { ($0.marks[position], $0.range(of: position)) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(range.count, Self.longestSearch) + 1, alignment: 16)
    defer { buffer.deallocate() }
    let count = min(read(at: range.lowerBound, into: buffer), buffer.count - 1)
    guard count > 0 else { return [] }
    // C string functions stop at a zero byte, so each part up to a zero is searched separately.
    var from = 0
    while let zero = UnsafeRawBufferPointer(buffer).firstIndex(of: 0, in: from..<count) {
      buffer[zero] = 1
      from = zero + 1
    }
    buffer[count] = 0
    var numbers: [Int] = []
    var number = mark.line
    buffer.withMemoryRebound(to: CChar.self) { characters in
      guard var place = characters.baseAddress else { return }
      while let match = strstr(place, text) {
        while let end = memchr(place, 0x0A, match - place) {
          number += 1
          place = end.assumingMemoryBound(to: CChar.self) + 1
        }
        numbers.append(number)
        guard let end = strchr(match, 0x0A) else { return }
        number += 1
        place = end + 1
      }
    }
    return numbers
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the first index of a byte in a range, using `memchr`.
  fileprivate func firstIndex(of byte: Int32, in range: Range<Int>) -> Int? {
    guard !range.isEmpty, let start = baseAddress,
      let place = memchr(start + range.lowerBound, byte, range.count)
    else { return nil }
    return UnsafeRawPointer(place) - start
  }
}
