// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The locks held while a socket file that has no listener is replaced.
///
/// They must be released. A lock on the directory alone would let any user who can read the directory
/// prevent others from listening there, because `flock` requires no write permission. The mandatory lock is therefore
/// on the directory only if the current user owns it and others cannot open it. Otherwise it is on a file in the
/// directory of the user's message ports, which others cannot open either. The directory is then locked too if this
/// succeeds in time, which excludes other users who replace files there. It is also the only lock shared by two
/// processes of a user whose environments name different directories for message ports.
struct ReplacementLock {
  /// The number of attempts, one per millisecond.
  private static let attempts = 100

  private let directory: OwnedDescriptor
  private let file: OwnedDescriptor?

  /// - Throws: `flock` with `EWOULDBLOCK` if another process of this user does not release the lock; `open` if the
  ///   directory does not exist.
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

  /// Releases the locks, also those that a process forked meanwhile has copies of.
  func release() { for locked in [directory, file] { if let locked { _ = flock(locked.number, LOCK_UN) } } }

  /// Opens a file that others cannot open, or returns `nil` if there is no directory for it.
  private static func ownFile() throws(SystemError) -> OwnedDescriptor? {
    let place: OwnedDescriptor
    do throws(CheckedDirectory.Failure) {
      place = try CheckedDirectory(path: UserDirectory.path).open(making: true)
    } catch {
      // Without a free descriptor, the directory could not be checked.
      if case .system(let error) = error, [EMFILE, ENFILE].contains(error.number) { throw error }
      return nil
    }
    return OwnedDescriptor(
      try SystemCall.openFile.makeUninterrupted {
        CText.answer(".listening.lock") { crl_file_make_or_open(place.number, $0, 0o600) }
      })
  }

  /// Locks a file, and returns the number of attempts left.
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
