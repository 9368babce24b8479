// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// A file that is being received: `NAME.part`, and beside it `NAME.part.json`, which says what it is a part of.
final class PartFile: @unchecked Sendable {
  // Sendable: used by one thread at a time: by the loader's, and at the end by the one that puts it away.

  private let path: String
  private let url: String
  private var descriptor: Int32
  /// What is there from an earlier request.
  private(set) var kept = OperationState.Part()
  private var partPath: String { path + ".part" }
  private var notePath: String { path + ".part.json" }

  /// - Parameter resumes: Whether what is there from an earlier request is gone on with.
  init(_ path: String, url: String, resumes: Bool) throws(HTTP.Error) {
    self.path = path
    self.url = url
    var status = stat()
    // It would take the place of a device such as /dev/null, or fail when all has come.
    guard stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else {
      throw HTTP.Error(.fileFailed, "\(path) is there, and is no regular file")
    }
    descriptor = try Self.openLocked(path + ".part")
    guard resumes, fstat(descriptor, &status) == 0, status.st_size > 0, let note = PartNote(path: notePath),
      note.url == url, Int64(status.st_size) <= note.total, let validator = Validator(text: note.validator)
    else { return }
    kept.received = Int64(status.st_size)
    kept.validator = validator
    kept.total = note.total
  }

  /// Opens a file that nobody else has locked.
  ///
  /// Another download may have given the file its last name, or removed it, before it was locked here; then there is,
  /// or has to be, another of the name.
  private static func openLocked(_ path: String) throws(HTTP.Error) -> Int32 {
    while true {
      let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
      guard descriptor >= 0 else { throw failure("\(path) cannot be opened") }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        let error = failure("\(path) is used by another download")
        close(descriptor)
        throw error
      }
      var (locked, named) = (stat(), stat())
      if fstat(descriptor, &locked) == 0, stat(path, &named) == 0, locked.st_ino == named.st_ino,
        locked.st_dev == named.st_dev
      {
        return descriptor
      }
      close(descriptor)
    }
  }

  deinit { letGo() }

  /// Lets another download have the file.
  ///
  /// What comes after it has no effect.
  func letGo() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
  }

  /// Begins to write at an offset; zero: afresh.
  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) {
    guard ftruncate(descriptor, off_t(offset)) == 0, lseek(descriptor, off_t(offset), SEEK_SET) >= 0 else {
      throw Self.failure("\(partPath) cannot be written")
    }
    guard offset == 0 else { return }
    unlink(notePath)
    guard response.status == 200, response.headers["Content-Encoding"] == nil,
      let validator = Validator(response.headers), let total = response.contentLength
    else { return }
    try PartNote(url: url, validator: validator.text, total: total).write(to: notePath)
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let bytes = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
      do throws(SystemError) {
        let count = try SystemCall.fileWrite.makeUninterrupted {
          let count = RunLoopLibC.write(descriptor, bytes.baseAddress, bytes.count)
          return count < 0 ? -errno : Int32(count)
        }
        rest = rest.dropFirst(Int(count))
      } catch {
        throw HTTP.Error(.fileFailed, "\(partPath) cannot be written: \(systemText(error.number))")
      }
    }
  }

  /// Makes the file safe and gives it its name, unless nobody wants it any more by then.
  ///
  /// It may take long.
  func putAway(unless isUnwanted: () -> Bool) -> HTTP.Error? {
    guard !isUnwanted() else { return nil }
    guard fsync(descriptor) == 0 else { return Self.failure("\(partPath) cannot be made safe") }
    guard !isUnwanted() else { return nil }
    guard rename(partPath, path) == 0 else { return Self.failure("\(path) cannot be made") }
    unlink(notePath)
    return nil
  }

  /// Leaves what can be gone on with, and removes what cannot.
  func leave() {
    var status = stat()
    let canGoOn = fstat(descriptor, &status) == 0 && status.st_size > 0 && access(notePath, F_OK) == 0
    if !canGoOn {
      unlink(partPath)
      unlink(notePath)
    }
  }

  private static func failure(_ text: String) -> HTTP.Error {
    HTTP.Error(.fileFailed, "\(text): \(systemText(errno))")
  }
}

/// What stands in `NAME.part.json`: one object of texts and a number.
struct PartNote: Equatable {
  var url: String
  var validator: String
  var total: Int64

  var text: String {
    "{\"url\": \(Self.quoted(url)), \"validator\": \(Self.quoted(validator)), \"total\": \(total)}\n"
  }

  func write(to path: String) throws(HTTP.Error) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    defer { if file >= 0 { close(file) } }
    let bytes = Array(text.utf8)
    guard file >= 0, RunLoopLibC.write(file, bytes, bytes.count) == bytes.count else {
      throw HTTP.Error(.fileFailed, "\(path) cannot be written: \(systemText(errno))")
    }
  }

  /// What stands for an address: the part without secrets, and a digest of the whole.
  static func name(of url: String) -> String {
    "\(WebAddress.safeText(of: url)) \(hexadecimal(SHA256.digest(Array(url.utf8))).prefix(32))"
  }

  init(url: String, validator: String, total: Int64) {
    (self.url, self.validator, self.total) = (url, validator, total)
  }

  /// Reads a file; nil if it is none of ours.
  init?(path: String) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 16 * 1024)
    let count = read(file, &bytes, bytes.count)
    guard count > 0, count < bytes.count, let text = String(validating: bytes[..<count], as: UTF8.self) else {
      return nil
    }
    self.init(text: text)
  }

  init?(text: String) {
    var rest = text.unicodeScalars[...]
    func skip() { rest = rest.drop { $0 == " " || $0 == "\n" || $0 == "\r" || $0 == "\t" } }
    func take(_ scalar: Unicode.Scalar) -> Bool {
      skip()
      guard rest.first == scalar else { return false }
      rest = rest.dropFirst()
      return true
    }
    func string() -> String? {
      guard take("\"") else { return nil }
      var result = ""
      while let scalar = rest.popFirst() {
        if scalar == "\"" { return result }
        guard scalar == "\\" else {
          result.unicodeScalars.append(scalar)
          continue
        }
        guard let next = rest.popFirst() else { return nil }
        switch next {
        case "\"", "\\", "/": result.unicodeScalars.append(next)
        case "u":
          guard rest.count >= 4, let value = UInt32(String(rest.prefix(4)), radix: 16),
            let scalar = Unicode.Scalar(value)
          else { return nil }
          result.unicodeScalars.append(scalar)
          rest = rest.dropFirst(4)
        default: return nil
        }
      }
      return nil
    }
    var texts: [String: String] = [:]
    var number: Int64?
    guard take("{") else { return nil }
    repeat {
      guard let name = string(), take(":") else { return nil }
      skip()
      if rest.first == "\"" {
        guard let value = string() else { return nil }
        texts[name] = value
      } else {
        let digits = rest.prefix { ("0"..."9").contains($0) }
        guard name == "total", let value = Int64(String(digits)) else { return nil }
        number = value
        rest = rest.dropFirst(digits.count)
      }
    } while take(",")
    guard take("}"), let url = texts["url"], let validator = texts["validator"], let number else { return nil }
    self.init(url: url, validator: validator, total: number)
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case "\u{0}"..."\u{1f}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
