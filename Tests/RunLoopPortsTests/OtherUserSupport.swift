// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopPorts

/// Users whom nothing on this machine belongs to.
let hostile: UInt32 = 54_322
let friendly: UInt32 = 54_323

/// A directory that others may pass, and does away with the rest.
func sharedDirectory() throws -> (PortDirectory, MessagePort.Directory) {
  let directory = try PortDirectory()
  chmod(directory.path, 0o711)
  try #require(mkdir(directory.place.path, 0o711) == 0)
  chmod(directory.place.path, 0o711)
  return (directory, MessagePort.Directory(path: directory.place.path, isShared: true))
}

/// Runs a body in a child that is another user, until the parent closes the pipe that this returns.
func asUser(_ user: UInt32, _ body: () throws -> Void) throws -> (child: pid_t, done: RawPipe, end: RawPipe) {
  let done = try RawPipe()
  let end = try RawPipe()
  let child = forkProcess()
  if child == 0 {
    alarm(60)
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
