// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// A file that is being received: `NAME.part`, with a description of the complete file in `NAME.part.json`.
///
/// Other users may be able to create files in the directory and know these names. An existing file is only continued
/// if it belongs to this user, has no other hard links, and is not writable by others; anything else is neither
/// written nor trusted. If something else has the name, the data is written to a file with an unpredictable name,
/// which is removed if the request ends early.
final class PartFile: @unchecked Sendable {
  // Sendable: used by one thread at a time: the loader's, and finally the one that stores the file.

  private let path: String
  private let url: String
  /// The location of the complete file.
  private let target: FilePlace
  private let note: FilePlace
  private let part: FilePlace
  /// The file that is written if the part's name is taken, which cannot be continued.
  private let other: NewFile?
  private var file: OwnedDescriptor?
  private let generation = ForkGeneration.current
  private var descriptor: Int32 { file?.number ?? -1 }
  /// The part kept from an earlier request.
  private(set) var kept = OperationState.Part()
  private var partPath: String { path + ".part" }

  /// - Parameter resumes: Whether to continue a part kept from an earlier request.
  init(_ path: String, url: String, resumes: Bool) throws(HTTP.Error) {
    self.path = path
    self.url = url
    guard !path.utf8.contains(0) else {
      throw HTTP.Error(.fileFailed, "the path \(path.debugDescription) contains a zero byte")
    }
    do throws(SystemError) {
      target = try FilePlace(path)
      // Renaming would replace a device such as /dev/null, or fail after everything has been received.
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

  /// Opens or creates a file and locks it, or returns nil if something exists that other users can access.
  ///
  /// Another download may have renamed or removed the file before it was locked here. In that case the loop starts
  /// over.
  ///
  /// - Throws: An error of the call `flock` if another download holds the lock.
  private static func openOwn(_ place: FilePlace) throws(SystemError) -> OwnedDescriptor? {
    while true {
      let file: OwnedDescriptor
      do throws(SystemError) {
        file = try place.open(O_RDWR)
      } catch {
        switch error.number {
        case ENOENT: break
        // A symbolic link, a directory, a socket, or another user's file.
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
        // A part of this user's that others can write is not continued, and is removed.
        guard status.kind == S_IFREG, status.owner == geteuid(), status.names == 1 else { return nil }
        place.remove()
        continue
      }
      do throws(SystemError) {
        _ = try SystemCall.lockFile.makeUninterrupted { flock(file.number, LOCK_EX | LOCK_NB) < 0 ? -errno : 0 }
      } catch {
        // Another user with read access can lock the file.
        guard status.isOwn(canBeRead: false) else { return nil }
        throw error
      }
      if status.isSame(as: try place.status()) { return file }
    }
  }

  deinit { letGo() }

  /// Closes the file and releases its lock, so that another download can use it.
  ///
  /// Later calls of other methods have no effect.
  func letGo() {
    // A program that is being started has a copy of the descriptor for a moment, and a forked child for longer.
    if let file, !generation.isPast { _ = flock(file.number, LOCK_UN) }
    file = nil
  }

  /// Prepares for writing at an offset; 0 starts over.
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

  /// Syncs the file and renames it to its final name, unless the request has ended by then.
  ///
  /// This may take a long time.
  func putAway(unless isUnwanted: () -> Bool) -> HTTP.Error? {
    guard !isUnwanted() else { return nil }
    guard fsync(descriptor) == 0 else { return Self.failure("\(partPath) cannot be made safe") }
    guard !isUnwanted() else { return nil }
    // Until now, only this user had access.
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
      // The part may be continued later.
      _ = fchmod(descriptor, 0o600)
      return HTTP.Error(.fileFailed, "\(path) cannot be made: \(systemText(error.number))")
    }
    note.remove()
    return nil
  }

  /// Keeps a part that can be continued, and removes one that cannot.
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
  /// Writes the note, replacing an existing file, unless another user's file is in the way: then there is no note, and
  /// the part cannot be continued.
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

  /// A name for a URL in notes: the URL without secrets, and a digest of the complete URL.
  static func name(of url: String) -> String {
    "\(WebAddress.safeText(of: url)) \(hexadecimal(SHA256.digest(Array(url.utf8))).prefix(32))"
  }

  /// Reads a note; nil if the file does not belong to this user or is writable by others.
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
