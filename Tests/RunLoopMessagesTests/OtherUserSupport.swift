// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopMessages

/// Users that own nothing on this machine.
let hostile: UInt32 = 54_322
let friendly: UInt32 = 54_323

/// Creates a directory that other users may enter, and removes it at the end.
func sharedDirectory() throws -> (PortDirectory, MessagePort.Directory) {
  let directory = try PortDirectory()
  chmod(directory.path, 0o711)
  try #require(mkdir(directory.place.path, 0o711) == 0)
  chmod(directory.place.path, 0o711)
  return (directory, MessagePort.Directory(path: directory.place.path, isShared: true))
}

/// Waits until a loop of another thread sleeps, and not for the first time, for which Swift's runtime makes types.
private func awaitSleep(of loop: RunLoop) {
  for _ in 0..<2 {
    let isServed = Latch()
    loop.perform { isServed.open() }
    isServed.wait()
    waitUntil { loop.isWaiting }
  }
}

/// Runs a body in a child as another user, until the parent closes the returned pipe.
///
/// - Parameter loop: A loop on another thread that must be asleep before the fork. A fork copies the Swift runtime's
///   locks in their current state, and the child would wait forever for one that another thread holds.
func asUser(
  _ user: UInt32, beside loop: RunLoop? = nil, _ body: () throws -> Void
) throws -> (child: pid_t, done: RawPipe, end: RawPipe) {
  let done = try RawPipe()
  let end = try RawPipe()
  if let loop { awaitSleep(of: loop) }
  let child = forkProcess()
  if child == 0 {
    // Dispatch blocks signals on its threads.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    alarm(300)
    done.closeReading()
    end.closeWriting()
    guard setgid(user) == 0, setuid(user) == 0 else { _exit(1) }
    do { try body() } catch { _exit(2) }
    done.write()
    end.awaitEnd()
    _exit(0)
  }
  end.closeReading()
  done.closeWriting()
  return (child, done, end)
}
