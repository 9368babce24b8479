// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopLibC

/// A file that is either written completely or not at all; an existing file is kept until then.
///
/// Other users may be able to create files in the directory, and the tool may run as root. A link is followed only if
/// it belongs to this user or root, and the permissions of a replaced file are kept only if it belongs to this user.
/// Must be used on a single thread.
final class OutputFile {
  private let path: String
  private let descriptor: OwnedDescriptor
  /// The new file until it is complete, or nil if the existing file is not regular, such as a pipe, and is written
  /// directly.
  private let new: NewFile?

  init(_ path: String) throws(RecordError) {
    self.path = path
    do throws(SystemError) {
      switch try OutputTarget(path) {
      case .stream(let found):
        new = nil
        descriptor = found
      case .file(let place, let status):
        let made = try NewFile(at: place)
        (new, descriptor) = (made, made.descriptor)
        // The permissions come from the umask, or from the existing file.
        let mode = status.map { $0.owner == geteuid() ? $0.permissions & 0o777 : 0o600 }
        guard fchmod(descriptor.number, mode ?? mode_t(filePermissions()) & 0o644) == 0 else {
          throw SystemError(call: "fchmod", number: errno)
        }
      }
    } catch {
      throw RecordError(OutputFile.reason(path, error))
    }
  }

  private static func reason(_ path: String, _ error: SystemError) -> String {
    let text =
      error.call == OutputTarget.distrust
      ? "it is, or leads through, a link or pipe of another user" : String(cString: strerror(error.number))
    return "\(path) cannot be written: \(text)"
  }

  private func failure() -> RecordError {
    RecordError("\(path) cannot be written: \(String(cString: strerror(errno)))")
  }

  func write(_ bytes: [UInt8]) throws(RecordError) {
    var place = 0
    while place < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        RunLoopLibC.write(descriptor.number, buffer.baseAddress.map { $0 + place }, bytes.count - place)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw failure() }
      place += count
    }
  }

  /// Moves the file to its path.
  func finish() throws(RecordError) {
    // Some file systems report only now that they are full.
    guard fsync(descriptor.number) == 0 || errno == EINVAL || errno == EROFS else { throw failure() }
    do throws(SystemError) { try new?.finish() } catch { throw RecordError(OutputFile.reason(path, error)) }
  }

  /// Discards the new file and keeps the existing one.
  func remove() { new?.discard() }
}

/// The kind of file at an output path.
private enum OutputTarget {
  /// A pipe, a terminal or another device.
  case stream(OwnedDescriptor)
  /// A place for a regular file, with the status of an existing one.
  case file(FilePlace, FileStatus?)

  /// Marks errors about files that another user has put there.
  static let distrust = "trust"

  init(_ path: String) throws(SystemError) {
    var path = path
    var links = 0
    while true {
      let place = try FilePlace(path)
      guard let status = try place.status() else {
        self = .file(place, nil)
        return
      }
      let isTrusted = status.owner == geteuid() || status.owner == 0
      switch status.kind {
      case S_IFLNK:
        // Replaces the target of the link, not the link.
        guard isTrusted else { throw SystemError(call: OutputTarget.distrust, number: EPERM) }
        links += 1
        guard links <= 40 else { throw SystemError(call: "open", number: ELOOP) }
        let target = try OutputTarget.target(of: path)
        var (shown, followed) = (stat(), stat())
        let next = target.hasPrefix("/") ? target : OutputTarget.folder(of: path) + target
        // The links in /proc/self/fd lead to open files, such as pipes without a path, regardless of their text.
        if stat(path, &followed) == 0, followed.st_mode & S_IFMT != S_IFREG, followed.st_mode & S_IFMT != S_IFDIR,
          stat(next, &shown) != 0 || shown.st_ino != followed.st_ino || shown.st_dev != followed.st_dev
        {
          self = .stream(try OutputTarget.open(path))
          return
        }
        path = next
      case S_IFREG:
        // Replacing a file requires permission to write to it.
        guard faccessat(place.directory.number, place.name, W_OK, 0) == 0 else {
          throw SystemError(call: "open", number: errno)
        }
        self = .file(place, status)
        return
      case S_IFIFO where !isTrusted:
        throw SystemError(call: OutputTarget.distrust, number: EPERM)
      default:
        self = .stream(try OutputTarget.open(path))
        return
      }
    }
  }

  private static func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
  }

  private static func target(of link: String) throws(SystemError) -> String {
    var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = bytes.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.map { readlink(link, $0, buffer.count) } ?? -1
    }
    guard count > 0, count < bytes.count else {
      throw SystemError(call: "readlink", number: count < 0 ? errno : ENAMETOOLONG)
    }
    return String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func open(_ path: String) throws(SystemError) -> OwnedDescriptor {
    let descriptor = RunLoopLibC.open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError(call: "open", number: errno) }
    return OwnedDescriptor(descriptor)
  }
}
