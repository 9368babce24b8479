// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// A file that is being received: `NAME.part`, and beside it `NAME.part.json`, which says what it is a part of.
///
/// Others may be able to make files in the directory, and know the names. Only a file of this user is continued, which
/// has no other name and which others cannot write to: everything else is neither written to nor
/// believed. If something else has the name, what is received goes to a file of another name, which others cannot
/// foresee, and which is removed if the request ends early.
final class PartFile: @unchecked Sendable {
  // Sendable: used by one thread at a time: by the loader's, and at the end by the one that puts it away.

  private let path: String
  private let url: String
  /// The name of the complete file.
  private let target: FilePlace
  private let note: FilePlace
  private let part: FilePlace
  /// What is written if something else has the name of the part; it is not continued.
  private let other: NewFile?
  private var file: OwnedDescriptor?
  private var descriptor: Int32 { file?.number ?? -1 }
  /// What is there from an earlier request.
  private(set) var kept = OperationState.Part()
  private var partPath: String { path + ".part" }

  /// - Parameter resumes: Whether what is there from an earlier request is gone on with.
  init(_ path: String, url: String, resumes: Bool) throws(HTTP.Error) {
    self.path = path
    self.url = url
    guard !path.utf8.contains(0) else {
      throw HTTP.Error(.fileFailed, "the path \(path.debugDescription) contains a zero byte")
    }
    do throws(SystemError) {
      target = try FilePlace(path)
      // It would take the place of a device such as /dev/null, or fail when everything has arrived.
      guard try target.status().map({ $0.kind == S_IFREG }) ?? true else {
        throw SystemError(call: SystemCall.fileStatus.rawValue, number: EEXIST)
      }
    } catch {
      if error.number == EEXIST { throw HTTP.Error(.fileFailed, "\(path) is there, and is a link or no regular file") }
      throw HTTP.Error(.fileFailed, "\(path).part cannot be opened: \(systemText(error.number))")
    }
    note = FilePlace(target, name: target.name + ".part.json")
    part = FilePlace(target, name: target.name + ".part")
    do throws(SystemError) {
      if let own = try Self.openOwn(part) {
        (file, other) = (own, nil)
      } else {
        let made = try NewFile(at: target)
        (file, other) = (made.descriptor, made)
      }
    } catch {
      let what = error.call == SystemCall.lockFile.rawValue ? "is used by another download" : "cannot be opened"
      throw HTTP.Error(.fileFailed, "\(path).part \(what): \(systemText(error.number))")
    }
    var status = stat()
    guard resumes, other == nil, fstat(descriptor, &status) == 0, status.st_size > 0, let note = PartNote(at: note),
      note.url == url, Int64(status.st_size) <= note.total, let validator = Validator(text: note.validator)
    else { return }
    kept.received = Int64(status.st_size)
    kept.validator = validator
    kept.total = note.total
    kept.codings = HTTP.Headers([.init("Content-Encoding", note.codings)]).codings
  }

  /// Opens the file of a name, or makes it, and locks it; nil if something is there that is not this user's alone.
  ///
  /// Another download may have given the file its last name, or removed it, before it was locked here; then there is,
  /// or has to be, another of the name.
  ///
  /// - Throws: `flock` if another download has it.
  private static func openOwn(_ place: FilePlace) throws(SystemError) -> OwnedDescriptor? {
    while true {
      let file: OwnedDescriptor
      do throws(SystemError) {
        file = try place.open(O_RDWR)
      } catch {
        switch error.number {
        case ENOENT: break
        // A link, a directory, a socket, or another user's file.
        case ELOOP, EISDIR, ENXIO, EACCES, EPERM, ENOTDIR: return nil
        default: throw error
        }
        do throws(SystemError) {
          file = try place.make(mode: 0o600)
        } catch {
          if error.number == EEXIST { continue }
          throw error
        }
      }
      let status = try FileStatus(of: file)
      guard status.isOwn(canBeRead: true) else {
        // A part of this user's that others can write to is not continued, and does not stay in the way.
        guard status.kind == S_IFREG, status.owner == geteuid(), status.names == 1 else { return nil }
        place.remove()
        continue
      }
      do throws(SystemError) {
        _ = try SystemCall.lockFile.makeUninterrupted { flock(file.number, LOCK_EX | LOCK_NB) < 0 ? -errno : 0 }
      } catch {
        // Another user who can read a file can lock it.
        guard status.isOwn(canBeRead: false) else { return nil }
        throw error
      }
      if status.isSame(as: try place.status()) { return file }
    }
  }

  deinit { letGo() }

  /// Lets another download have the file.
  ///
  /// What comes after it has no effect.
  func letGo() {
    file = nil
  }

  /// Begins to write at an offset; zero: afresh.
  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) {
    guard ftruncate(descriptor, off_t(offset)) == 0, lseek(descriptor, off_t(offset), SEEK_SET) >= 0 else {
      throw Self.failure("\(partPath) cannot be written")
    }
    guard offset == 0, other == nil else { return }
    note.remove()
    guard response.status == 200, response.decodedFrom.isEmpty,
      let validator = Validator(response.headers), let total = response.contentLength
    else { return }
    let codings = response.headers.codings.joined(separator: ", ")
    try PartNote(url: url, validator: validator.text, total: total, codings: codings).write(at: note)
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
    // Until now it was this user's alone.
    guard fchmod(descriptor, mode_t(filePermissions())) == 0 else {
      return Self.failure("\(partPath) cannot be made safe")
    }
    do throws(SystemError) {
      if let other {
        try other.finish()
        return nil
      }
      try part.rename(to: target.name)
    } catch {
      // It may be continued later.
      _ = fchmod(descriptor, 0o600)
      return HTTP.Error(.fileFailed, "\(path) cannot be made: \(systemText(error.number))")
    }
    note.remove()
    return nil
  }

  /// Leaves what can be gone on with, and removes what cannot.
  func leave() {
    if let other { return other.discard() }
    var status = stat()
    let canGoOn = fstat(descriptor, &status) == 0 && status.st_size > 0 && PartNote(at: note) != nil
    if !canGoOn {
      part.remove()
      note.remove()
    }
  }

  private static func failure(_ text: String) -> HTTP.Error {
    HTTP.Error(.fileFailed, "\(text): \(systemText(errno))")
  }
}

extension PartNote {
  /// Writes the note in the place of what is there; if another user's file is there and cannot be replaced, there is
  /// no note, and the part is not continued.
  func write(at place: FilePlace) throws(HTTP.Error) {
    do throws(SystemError) {
      let (made, file) = try place.makeRandom(".runloop-%.part", mode: 0o600)
      let bytes = Array(text.utf8)
      do throws(SystemError) {
        _ = try SystemCall.fileWrite.makeUninterrupted {
          let count = RunLoopLibC.write(file.number, bytes, bytes.count)
          return count == bytes.count ? 0 : count < 0 ? -errno : -ENOSPC
        }
        try made.rename(to: place.name)
      } catch {
        made.remove()
        guard error.call == SystemCall.rename.rawValue else { throw error }
      }
    } catch {
      throw HTTP.Error(.fileFailed, "the note \(place.name) cannot be written: \(systemText(error.number))")
    }
  }

  /// What stands for an address: the part without secrets, and a digest of the whole.
  static func name(of url: String) -> String {
    "\(WebAddress.safeText(of: url)) \(hexadecimal(SHA256.digest(Array(url.utf8))).prefix(32))"
  }

  /// Reads a file; nil if it is none of this user's, or others can write to it.
  init?(at place: FilePlace) {
    guard let file = try? place.open(O_RDONLY) else { return nil }
    guard let status = try? FileStatus(of: file), status.isOwn(canBeRead: true) else { return nil }
    var bytes = [UInt8](repeating: 0, count: 16 * 1024)
    let count = read(file.number, &bytes, bytes.count)
    guard count > 0, count < bytes.count, let text = String(validating: bytes[..<count], as: UTF8.self) else {
      return nil
    }
    self.init(text: text)
  }
}
