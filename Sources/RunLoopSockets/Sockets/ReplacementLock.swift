// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The locks under which a socket's file without a listener is replaced; they are released with the object.
///
/// A lock on the directory alone would let any user who may read the directory prevent others from listening there:
/// `flock` needs no right to write. Therefore the lock that must be had is on the directory only if it is this user's
/// and others cannot open it. Otherwise it is on a file in the directory of the user's message ports, which others
/// cannot open either. Then the directory is locked as well, if that can be done soon: another user who replaces files
/// there waits. Two processes of a user whose environments name different directories for message ports exclude each
/// other by that lock only.
struct ReplacementLock {
  /// How often it is tried, every millisecond.
  private static let attempts = 100

  private let directory: OwnedDescriptor
  private let file: OwnedDescriptor?

  /// - Throws: `flock` with `EWOULDBLOCK` if other processes of this user do not release it; `open` if there is no such
  ///   directory.
  init(_ path: CText) throws(SystemError) {
    let bytes = path.bytes
    let end = bytes.lastIndex(of: UInt8(ascii: "/"))
    let name = end.map { $0 == 0 ? Array("/".utf8) : Array(bytes[..<$0]) } ?? Array(".".utf8)
    let opened = OwnedDescriptor(
      try SystemCall.openFile.make {
        let answer = (try? CText(bytes: name))?.withPointer { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        return answer.map { $0 < 0 ? -errno : $0 } ?? -EINVAL
      })
    var status = crl_file_status()
    let isOwn =
      crl_status_of(opened.number, &status) == 0 && status.user == geteuid()
      && status.mode & 0o077 == 0
    if isOwn {
      _ = try Self.lock(opened, attempts: Self.attempts)
      (directory, file) = (opened, nil)
      return
    }
    let own = try Self.ownFile()
    var left = Self.attempts
    if let own { left = try Self.lock(own, attempts: left) }
    file = own
    directory = opened
    _ = try? Self.lock(opened, attempts: left)
  }

  /// A file that others cannot open; nil if there is no directory for one.
  private static func ownFile() throws(SystemError) -> OwnedDescriptor? {
    let place: OwnedDescriptor
    do throws(CheckedDirectory.Failure) {
      place = try CheckedDirectory(path: UserDirectory.path).open(making: true)
    } catch {
      // Without a descriptor nothing is known of the directory.
      if case .system(let error) = error, [EMFILE, ENFILE].contains(error.number) { throw error }
      return nil
    }
    return OwnedDescriptor(
      try SystemCall.openFile.makeUninterrupted {
        CText.answer(".listening.lock") { crl_file_make_or_open(place.number, $0, 0o600) }
      })
  }

  /// Locks a file, and returns how many attempts are left.
  private static func lock(_ file: OwnedDescriptor, attempts: Int) throws(SystemError) -> Int {
    var attempt = 0
    while true {
      do throws(SystemError) {
        _ = try SystemCall.lockFile.make { flock(file.number, LOCK_EX | LOCK_NB) < 0 ? -errno : 0 }
        return attempts - attempt
      } catch {
        attempt += 1
        guard error.number == EWOULDBLOCK || error.number == EINTR, attempt < attempts else { throw error }
        usleep(1000)
      }
    }
  }
}
