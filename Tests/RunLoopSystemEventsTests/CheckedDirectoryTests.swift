// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing

@testable import RunLoopSystemEvents

@Suite("Directories with checked ownership") struct CheckedDirectoryTests {
  @Test("a directory of another user, or writable by others, is rejected")
  func faults() {
    let stranger = geteuid() + 1
    let own = CheckedDirectory(path: "/tmp/a")
    #expect(own.fault(mode: S_IFDIR | 0o700, user: stranger, isOwners: false) == .foreign(user: stranger))
    let shared = CheckedDirectory(path: "/tmp/a", isShared: true)
    #expect(shared.fault(mode: S_IFDIR | 0o711, user: geteuid() + 1, isOwners: false) == nil)
    #expect(shared.fault(mode: S_IFDIR | 0o733, user: geteuid(), isOwners: false) == .open(permissions: 0o733))
  }
}
